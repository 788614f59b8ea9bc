// Commands and arguments as people type them in a shell, and as TrainJobs have them: one text for each word.

import { quoted } from "../job/command";

/** The words as a text: each option begins a line, with its value beside it. */
export function joined(words: readonly string[]): string {
  return words.map((word, index) => (index === 0 ? "" : word.startsWith("-") ? "\n" : " ") + quoted(word)).join("");
}

/**
 * The words of a text, apart at spaces and ends of lines, with quotes as a shell has them. Nothing is replaced: variables,
 * `~` and `*` stay as they are, since no shell reads them.
 *
 * @throws Error a quote has no end.
 */
export function split(text: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (let index = 0; index < text.length; index++) {
    const letter = text[index]!;
    if (/\s/.test(letter)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (letter === "'" || letter === '"') {
      const [inside, end] = quotation(text, index);
      word = (word ?? "") + inside;
      index = end;
    } else if (letter === "\\") {
      index++;
      if (text[index] !== "\n") word = (word ?? "") + (text[index] ?? "\\");
    } else {
      word = (word ?? "") + letter;
    }
  }
  return word === null ? words : [...words, word];
}

/** What stands between quotes, and where the second one is. */
function quotation(text: string, start: number): [inside: string, end: number] {
  const quote = text[start]!;
  let inside = "";
  for (let index = start + 1; index < text.length; index++) {
    const letter = text[index]!;
    if (letter === quote) return [inside, index];
    const isEscape = quote === '"' && letter === "\\" && '"\\$`\n'.includes(text[index + 1] ?? " ");
    if (!isEscape) inside += letter;
    else if (text[++index] !== "\n") inside += text[index];
  }
  throw new Error(`The quote ${quote} is not closed.`);
}
