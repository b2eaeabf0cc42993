/**
 * The results of a job that a board keeps with the record of its end (`keepResults` of a flow), so that any process can read them without the
 * logbooks. A board keeps small results: larger ones belong in a logbook, a file or an object store, and the job returns where they are.
 */
import { decodeWeighed, encode, encodePlain, toFields } from '../../core/codec.ts'
import { describeError } from '../../core/failure.ts'

/** The longest results that are kept, encoded, in bytes. */
export const MAX_KEPT_RESULTS = 65_536
/** The maximum memory of decoded results, in bytes. */
const MAX_MEMORY = 4 * 1_024 * 1_024

/**
 * The kept results: as they are, sealed by the codecs of the logbooks (`by` names them), or the reason why they could not be kept. The flow has
 * succeeded in each case.
 */
export type KeptResults =
  | { readonly values: Readonly<Record<string, unknown>> }
  | { readonly sealed: { readonly by: readonly string[]; readonly bytes: Uint8Array } }
  | { readonly notKept: string }

/** Encodes results for the history. Never throws: what cannot be kept is replaced by the reason. */
export function encodeKeptResults(kept: KeptResults): Uint8Array {
  try {
    const bytes = encode(kept, 'msgpack')
    if (bytes.length <= MAX_KEPT_RESULTS) return bytes
    return encodePlain({ notKept: `they have ${bytes.length} bytes, and a board keeps ${MAX_KEPT_RESULTS}` }, 'msgpack')
  } catch (error) {
    return encodePlain({ notKept: describeError(error) }, 'msgpack')
  }
}

/** Decodes kept results; damaged bytes count as not kept. */
export function decodeKeptResults(bytes: Uint8Array): KeptResults {
  try {
    const fields = toFields(decodeWeighed(bytes, 'msgpack', { most: MAX_MEMORY }).value) ?? {}
    const values = toFields(fields['values'])
    if (values) return { values }
    const sealed = toFields(fields['sealed'])
    const { by, bytes: secret } = sealed ?? {}
    if (Array.isArray(by) && by.every((name) => typeof name === 'string') && secret instanceof Uint8Array)
      return { sealed: { by, bytes: secret } }
    return { notKept: typeof fields['notKept'] === 'string' ? fields['notKept'] : 'their record is damaged' }
  } catch (error) {
    return { notKept: `their record is damaged: ${describeError(error)}` }
  }
}
