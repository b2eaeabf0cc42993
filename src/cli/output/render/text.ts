/** Text from users for a terminal: escaped, and measured in columns. */

/**
 * Control characters, line breaks, characters that change the direction of writing, and invisible characters
 * (zero-width characters, soft hyphens, tags): any of them could forge the output, or make two names look alike. Arabic
 * number signs are in the class of invisible characters, and are visible; joiners and selectors stay inside of an
 * emoji.
 */
const UNPRINTABLE_PATTERN = new RegExp(
  [
    String.raw`(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d`,
    String.raw`\u200d(?!\p{Extended_Pictographic})`,
    String.raw`(?<!\p{Emoji})\ufe0f`,
    String.raw`(?![\u200d\ufe0f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\p{Surrogate}\u2028\u2029]`,
  ].join('|'),
  'gu',
)
const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** Escapes a text to one line without control characters. */
export function escapeUnprintable(text: string): string {
  return text.replaceAll(UNPRINTABLE_PATTERN, (character) => SHORT_ESCAPES[character] ?? escapeCharacter(character))
}

/** Encodes JSON on one line that is safe for a terminal: JSON itself escapes only some of the control characters. */
export function toPrintableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNPRINTABLE_PATTERN, (character) => {
    // JSON has escapes for code units only: some of these characters have two.
    return character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join('')
  })
}

function escapeCharacter(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16)
  return hex.length <= 2 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`
}

const ZERO_WIDTH_PATTERN = /[\p{Mn}\p{Me}\p{Cf}]/u
const DOUBLE_WIDTH_PATTERN =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

/** Returns the number of columns that a text takes on a terminal. */
export function displayWidth(text: string): number {
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

/** Truncates a text to a number of columns, with an ellipsis for the missing part. */
export function truncate(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text
  let kept = ''
  let width = 1
  for (const character of text) {
    width += characterWidth(character)
    if (width > columns) break
    kept += character
  }
  return `${kept}…`
}

/** Wraps a text between words; a word that is longer than the width is not broken. */
export function wrap(text: string, columns: number | undefined): string[] {
  if (columns === undefined) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line !== '' && displayWidth(longer) > columns) lines.push(line)
    line = line !== '' && displayWidth(longer) > columns ? word : longer
  }
  return [...lines, line]
}

function characterWidth(character: string): number {
  if (ZERO_WIDTH_PATTERN.test(character)) return 0
  return DOUBLE_WIDTH_PATTERN.test(character) ? 2 : 1
}
