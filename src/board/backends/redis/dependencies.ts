/** Reads which jobs depend on others. */
import { type BackendDependencies, type KnownDependencies, MAX_SHOWN_DEPENDENCIES } from '../../contract/index.ts'
import type { RedisBoard } from './commit/board.ts'
import { decodeText } from './store/encodings.ts'
import { toTexts } from './store/replies.ts'

export class RedisDependencies implements BackendDependencies {
  readonly #board: RedisBoard

  constructor(board: RedisBoard) {
    this.#board = board
  }

  async of(id: string): Promise<KnownDependencies> {
    const range = [`[${id}:`, `(${id};`, 'LIMIT', '0', String(MAX_SHOWN_DEPENDENCIES)]
    const [wait, members] = await Promise.all([
      this.#board.value('waits', id),
      this.#board.command('zrangebylex', 'dependents', ...range),
    ])
    const items = wait ? decodeText(wait).split(';').slice(0, -1) : []
    const others = items.flatMap((item) => /[=~](.+)$/s.exec(item)?.[1] ?? [])
    return {
      waitsFor: others.slice(0, MAX_SHOWN_DEPENDENCIES),
      dependents: toTexts(members).map((member) => member.slice(id.length + 1)),
    }
  }
}
