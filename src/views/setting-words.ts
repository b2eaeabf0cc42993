/** Parses settings of flows from words that people type: `maxAttempts=7`, `backOff.first=10s`, `enabled=false`. */
import type { FlowSettingValues } from '../board/index.ts'
import { InvalidArgument } from '../core/errors.ts'
import { shortenText, suggestion } from '../core/texts.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'

/** The kind of each setting. Words and their limits are checked where settings are set. */
const KINDS: Readonly<Record<string, 'text' | 'number' | 'duration' | 'flag'>> = {
  priority: 'text',
  queue: 'text',
  delay: 'duration',
  expiresAfter: 'duration',
  onOwnerLost: 'text',
  maxAttempts: 'number',
  'backOff.first': 'duration',
  'backOff.factor': 'number',
  'backOff.max': 'duration',
  'backOff.jitter': 'text',
  deadline: 'duration',
  resultTtl: 'duration',
  keepResults: 'flag',
  keepLogbooks: 'duration',
  removeTrashAfter: 'duration',
  enabled: 'flag',
  force: 'flag',
}

/** The names of settings as they are typed. */
export const SETTING_NAMES: readonly string[] = Object.keys(KINDS)

/** Parses `key=value` words. @throws InvalidArgument */
export function parseFlowSettings(words: readonly string[]): FlowSettingValues {
  const settings: Record<string, unknown> = {}
  const given = new Set<string>()
  for (const word of words) {
    const [, key = '', text = ''] = /^([^=]*)=(.*)$/s.exec(word) ?? []
    if (key === '' || text === '')
      throw new InvalidArgument(`a setting must be key=value, such as maxAttempts=7, got '${shortenText(word)}'`)
    const value = parseValue(key, text)
    if (given.has(key)) throw new InvalidArgument(`setting ${key} is given twice: give it once`)
    given.add(key)
    const [name = '', part] = key.split('.', 2)
    if (part === undefined) settings[name] = value
    else settings[name] = { ...Object(settings[name]), [part]: value }
  }
  // The kinds of the values are checked, and their limits where they are set.
  return settings as FlowSettingValues
}

/** Checks names of settings, and returns those that records have: `backOff` for `backOff.first`. @throws InvalidArgument */
export function parseSettingNames(words: readonly string[]): readonly (keyof FlowSettingValues)[] {
  return words.map((word) => {
    if (word === 'backOff') return word
    if (!Object.hasOwn(KINDS, word)) throw unknownError(word)
    if (word.startsWith('backOff.'))
      throw new InvalidArgument(`${word} cannot be removed alone: unset backOff, and set the parts that should stay`)
    return word as keyof FlowSettingValues
  })
}

function parseValue(key: string, text: string): unknown {
  switch (Object.hasOwn(KINDS, key) ? KINDS[key] : undefined) {
    case 'text':
      return text
    case 'number':
      if (!/^\d+(\.\d+)?$/.test(text)) throw new InvalidArgument(`${key} must be a number, got '${shortenText(text)}'`)
      return Number(text)
    case 'duration':
      return key === 'keepLogbooks' && text === 'forever' ? text : toDuration(text, key)
    case 'flag':
      if (text !== 'true' && text !== 'false')
        throw new InvalidArgument(`${key} must be true or false, got '${shortenText(text)}'`)
      return text === 'true'
    default:
      throw unknownError(key)
  }
}

/** Parses a duration; a number without a unit is in milliseconds. @throws InvalidArgument */
function toDuration(text: string, what: string): Duration {
  return /^\d+$/.test(text) ? Number(text) : toMilliseconds(text, what)
}

function unknownError(key: string): InvalidArgument {
  if (key === 'backOff') return new InvalidArgument('backOff is set by its parts, such as backOff.first=10s')
  return new InvalidArgument(`there is no setting ${shortenText(key)}${suggestion(key, SETTING_NAMES)}`)
}
