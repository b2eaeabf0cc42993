/** Reads the messages of children. Their code is the code of tasks: what it sends is checked, and a wrong message ends its child alone. */
import { toFields } from '../core/codec.ts'
import { type Failure, parseFailure } from '../core/failure.ts'
import type { FromChild } from './protocol.ts'

/** A message that no child of this release sends. */
export class WrongMessage extends Error {}

/** Returns the message. @throws WrongMessage */
export function parseFromChild(value: unknown): FromChild {
  const fields = toFields(value)
  if (!fields) throw new WrongMessage('it is not an object')
  const { kind } = fields
  switch (kind) {
    case 'ready':
      return { kind, protocol: toNumber(fields, 'protocol'), facts: fields['facts'] }
    case 'refused':
      return { kind, failure: toFailure(fields) }
    case 'begun':
      return { kind, number: toNumber(fields, 'number') }
    case 'note':
      return { kind, number: toNumber(fields, 'number'), note: fields['note'] }
    case 'ask':
      return { kind, ...toQuestion(fields), content: fields['content'] }
    case 'drop':
      return { kind, ...toQuestion(fields) }
    case 'done':
      return { kind, number: toNumber(fields, 'number'), result: fields['result'] }
    case 'failed':
      if (typeof fields['isLast'] !== 'boolean') throw new WrongMessage('isLast is not a boolean')
      return { kind, number: toNumber(fields, 'number'), failure: toFailure(fields), isLast: fields['isLast'] }
    case 'fault':
      return { kind, number: toNumber(fields, 'number'), failure: toFailure(fields) }
    default:
      throw new WrongMessage('its kind is not known')
  }
}

type Fields = Readonly<Record<string, unknown>>

function toQuestion(fields: Fields): { readonly number: number; readonly question: number } {
  return { number: toNumber(fields, 'number'), question: toNumber(fields, 'question') }
}

function toNumber(fields: Fields, name: string): number {
  const value = fields[name]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new WrongMessage(`${name} is not a whole number`)
}

/** Returns a copy of the failure with limited depth and size: a failure that is its own cause would otherwise have no end. */
function toFailure({ failure }: Fields): Failure {
  const fields = toFields(failure)
  const parsed = fields && parseFailure(fields)
  if (!parsed) throw new WrongMessage('its failure is not an object')
  const { nextQueue } = fields
  return typeof nextQueue === 'string' ? { ...parsed, nextQueue } : parsed
}
