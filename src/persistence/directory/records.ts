/**
 * What is in the files. Each begins with a record that carries the format's number, so that an older release says so
 * instead of misreading it.
 *
 *     book*.record  {format, book}
 *     <term>.mark   {format, claim}
 *     <term>.log    {format, flow: as it was acquired}, then per transition {at, state?, meta?, atoms?}
 */
import { IncompatibleVersion, StorageFailure } from '../../core/errors.ts'
import { applyTransitions } from '../apply.ts'
import { checkedBook, checkedTransition, checkedWholeFlow, damaged } from '../checked-records.ts'
import { writtenAtom } from '../flow-image.ts'
import type { BookDetail, FlowDetail } from '../models.ts'
import type { Transition } from '../persistence.ts'
import { frame, unframe } from './frames.ts'

const FORMAT = 1

export function bookBytes(book: BookDetail): Uint8Array {
  return frame({ format: FORMAT, book })
}

export function markBytes(claim: string): Uint8Array {
  return frame({ format: FORMAT, claim })
}

export function flowBytes(flow: FlowDetail): Uint8Array {
  return frame({ format: FORMAT, flow })
}

/** @throws InvalidArgument when a result is no plain data */
export function transitionBytes({ state, meta, atoms }: Transition, at: Date): Uint8Array {
  return frame({ at, ...(state && { state }), ...(meta && { meta }), ...(atoms && { atoms: atoms.map(writtenAtom) }) })
}

/** @throws IncompatibleVersion @throws StorageFailure when it is damaged */
export function readBook(bytes: Buffer, file: string): BookDetail {
  return checkedBook(content(recordsIn(bytes, file), { key: 'book', file }), file)
}

/** @throws IncompatibleVersion @throws StorageFailure when it is damaged */
export function readFlow(bytes: Buffer, file: string): FlowDetail {
  const [first, ...transitions] = recordsIn(bytes, file)
  const flow = checkedWholeFlow(content([first], { key: 'flow', file }), file)
  return applyTransitions(
    flow,
    transitions.map((transition) => checkedTransition(transition, file)),
  )
}

/**
 * The claim in a mark, or undefined where it cannot be told. Marks are not synced, so a power failure may leave an empty
 * one; it is nobody's then, which is right: whoever made it did not live on.
 */
export function readMark(bytes: Buffer, file: string): string | undefined {
  const records = recordsIn(bytes, file)
  return records.length === 0 ? undefined : String(content(records, { key: 'claim', file }))
}

/** @throws StorageFailure for a record whose checksum is right and whose content is not */
function recordsIn(bytes: Buffer, file: string): unknown[] {
  try {
    return unframe(bytes)
  } catch (cause) {
    throw damaged(file, cause instanceof Error ? cause.message : String(cause), cause)
  }
}

function content([first]: readonly unknown[], { key, file }: { key: string; file: string }): unknown {
  const fields: Readonly<Record<string, unknown>> = typeof first === 'object' ? { ...first } : {}
  const { format, [key]: value } = fields
  if (typeof format === 'number' && format > FORMAT) {
    const can = `this one reads up to ${FORMAT}`
    throw new IncompatibleVersion(`${file} was written by a newer release (format ${format}, ${can}); update jobboard`)
  }
  if (format === FORMAT && value !== undefined) return value
  throw new StorageFailure(`${file} is damaged or was not written by jobboard; restore it or remove its folder`)
}
