// A command as people read and copy it.

/** A word as a shell needs it to be one word. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function commandText(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

/** A text with its controls as signs, but for tabs and ends of lines: nothing that runs is left out. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}
