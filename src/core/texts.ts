/** Texts that were written by others: how long they may be, and how they are shown. */

/** How long the name of anything may be, in bytes of UTF-8: it stands in every log line, and in the paths of servers. */
export const MAX_NAME_BYTES = 1_024

const MAX_QUOTE_LENGTH = 100

/** Whether the name is longer than {@link MAX_NAME_BYTES}. */
export function isTooLong(name: string): boolean {
  // A character takes three bytes at most: most names are judged without looking at them.
  return name.length > MAX_NAME_BYTES / 3 && Buffer.byteLength(name) > MAX_NAME_BYTES
}

/** Returns the beginning of a text, for a message. */
export function shortenText(text: string): string {
  return text.length > MAX_QUOTE_LENGTH ? `${text.slice(0, MAX_QUOTE_LENGTH)}…` : text
}

/** Returns the text as one line: line breaks, with the blanks around them, become one blank. Takes linear time. */
export function oneLine(text: string): string {
  if (!text.includes('\n')) return text
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ')
}
