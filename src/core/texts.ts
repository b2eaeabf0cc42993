/** Limits and display of texts that come from users and other programs. */

/** The longest name of anything, in bytes of UTF-8: names appear in every log line, and in paths on servers. */
export const MAX_NAME_BYTES = 1_024

const MAX_QUOTE_LENGTH = 100

/** Whether the name is longer than {@link MAX_NAME_BYTES}. */
export function isTooLong(name: string): boolean {
  // A UTF-16 unit takes at most three bytes: the length alone is enough for most names.
  return name.length > MAX_NAME_BYTES / 3 && Buffer.byteLength(name) > MAX_NAME_BYTES
}

/** Returns the beginning of a text, for a message. */
export function shortenText(text: string): string {
  return text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}…` : text
}

/** Returns the text as one line: each line break, with the blanks around it, becomes one blank. Takes linear time. */
export function oneLine(text: string): string {
  if (!text.includes('\n')) return text
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
}
