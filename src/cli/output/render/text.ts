/** Text from users for a terminal, with escapes for what could forge the output. `columns.ts` measures it. */
import { toJson } from '../../../core/json.ts'

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
  return toJson(value).replaceAll(UNPRINTABLE_PATTERN, (character) => {
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

/** Returns a text as one word of a shell command that can be copied. */
export function shellWord(text: string): string {
  const shown = escapeUnprintable(text)
  return /^[\w@%+=:,./-]+$/.test(shown) ? shown : `'${shown.replaceAll("'", `'\\''`)}'`
}
