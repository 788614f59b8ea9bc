// The parameters of a training, as its command and arguments name them.

/** A word as a shell needs it to be one word. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function commandText(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

const OPTION = /^--?[A-Za-z][\w.-]*$/;
const ASSIGNED = /^(-{0,2})([A-Za-z_+~][\w.@/-]*)=(.*)$/s;
const PROGRAM = /\.(py|sh)$|^-[mc]$/;

/**
 * Options behind the script, or behind `-m MODULE` and `-c PROGRAM`; those before it are for the launcher. `--lr 0.1`, `--lr=0.1`, `lr=0.1`
 * and `--fp16`, whose value is "".
 */
export function parametersOf(words: readonly string[]): [name: string, value: string][] {
  const script = words.findIndex((word) => PROGRAM.test(word));
  const own = script < 0 ? words : words.slice(script + (/^-[mc]$/.test(words[script]!) ? 2 : 1));
  const found = new Map<string, string>();
  const add = (name: string, value: string) => {
    const before = found.get(name);
    found.set(name, before ? `${before} ${value}` : value);
  };
  for (let index = 0; index < own.length; index++) {
    const word = own[index]!;
    const assigned = ASSIGNED.exec(word);
    if (assigned) {
      add(assigned[2]!, assigned[3]!);
    } else if (OPTION.test(word)) {
      const values: string[] = [];
      while (index + 1 < own.length && isValue(own[index + 1]!)) values.push(own[++index]!);
      add(word.replace(/^-+/, ""), values.join(" "));
    }
  }
  return [...found];
}

function isValue(word: string): boolean {
  return !OPTION.test(word) && !(word.startsWith("-") && ASSIGNED.test(word));
}

/** A text with its controls as signs, but for tabs and ends of lines: nothing that runs is left out. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
