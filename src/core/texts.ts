/** Texts that were written by others: how long they may be, and how they are shown. */

/** How long the name of anything may be, in bytes of UTF-8: it stands in every log line, and in the paths of servers. */
export const LONGEST_NAME_BYTES = 1_024

const LONGEST_QUOTE = 100

/** Whether the name is longer than {@link LONGEST_NAME_BYTES}. */
export function isTooLong(name: string): boolean {
  // A character takes three bytes at most: most names are judged without looking at them.
  return name.length > LONGEST_NAME_BYTES / 3 && Buffer.byteLength(name) > LONGEST_NAME_BYTES
}

/** Returns the beginning of a text, for a message. */
export function shortened(text: string): string {
  return text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text
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
