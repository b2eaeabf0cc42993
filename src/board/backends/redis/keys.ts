/** Replaces jobs that wait by others with the same key. */
import type { BackendKeys, Replaced, ReplaceRequest } from '../../contract/index.ts'
import { MAX_POSTING_BYTES, toCountedBytes } from '../../model/posting/posting-codec.ts'
import type { RedisBoard } from './commit/board.ts'
import { claimRejection, type ScriptStep, SMALL_STEP_BYTES, toJobName, toKeyField } from './commit/steps.ts'
import { encodePostingWithin } from './store/encodings.ts'
import { toPlaceWord } from './store/layout.ts'

export class RedisKeys implements BackendKeys {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async replace(request: ReplaceRequest): Promise<Replaced> {
    const bytes = encodePostingWithin(request.posting, { limit: MAX_POSTING_BYTES })
    const { done, details } = await this.#board.submit(replaceStep(request, bytes))
    if (!done) throw claimRejection(request, { why: details[0] })
    return { revision: request.revision + 1, bytes: toCountedBytes(bytes, 'msgpack') }
  }
}

function replaceStep({ id, revision, posting, window }: ReplaceRequest, bytes: Uint8Array): ScriptStep {
  const { delay = null } = posting
  return {
    arguments: ['replace', id, revision, toPlaceWord(posting), bytes, toKeyField(posting), delay, window ?? null],
    what: `replacement of ${toJobName(posting)}`,
    bytes: bytes.length + SMALL_STEP_BYTES,
    grows: true,
  }
}
