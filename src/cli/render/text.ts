/** Text from users on somebody's terminal: harmless, and measured in columns. */

/** Controls, what breaks lines, and what turns the direction of writing: any of them could forge what is shown. */
const DANGEROUS = /[\p{Cc}\p{Surrogate}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }

/** On one line, with nothing in it that a terminal would obey. */
export function printable(text: string): string {
  return text.replaceAll(DANGEROUS, (character) => SHORT[character] ?? escaped(character))
}

/** JSON on one line that a terminal can be shown: JSON itself escapes only some of the controls. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(DANGEROUS, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

function escaped(character: string): string {
  const hex = character.charCodeAt(0).toString(16)
  return hex.length <= 2 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`
}

const INVISIBLE = /[\p{Mn}\p{Me}\p{Cf}]/u
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u

/** How many columns of a terminal it takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += columnsOf(character)
  return width
}

/** Cut to so many columns, with an ellipsis where something is missing. */
export function truncated(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let kept = ''
  let width = 1
  for (const character of text) {
    width += columnsOf(character)
    if (width > columns) break
    kept += character
  }
  return `${kept}…`
}

/** Broken between words, where there is too little room; a word that is longer than all of it stays whole. */
export function wrapped(text: string, columns: number | undefined): string[] {
  if (columns === undefined) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line !== '' && widthOf(longer) > columns) lines.push(line)
    line = line !== '' && widthOf(longer) > columns ? word : longer
  }
  return [...lines, line]
}

function columnsOf(character: string): number {
  if (INVISIBLE.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}
