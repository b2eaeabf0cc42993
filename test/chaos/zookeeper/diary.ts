/** A client that writes as fast as it is answered, and a diary of what it was told, to be compared with what is there. */
import { op, type ZooKeeper, ZooKeeperError } from '../../../src/zookeeper/index.ts'
import { caughtUp } from './mirror.ts'

type Outcome = 'done' | 'refused' | 'not-sent' | 'unknown'

/** One znode that somebody wrote to, and nobody else. */
interface Line {
  created: Outcome
  deleted?: Outcome
  readonly data: { readonly value: string; readonly outcome: Outcome }[]
}

export type OutcomeCounts = Record<Outcome, number>

export class WriteLog {
  readonly tally: OutcomeCounts = { done: 0, refused: 0, 'not-sent': 0, unknown: 0 }
  readonly #client: ZooKeeper
  readonly #folder: string
  readonly #lines = new Map<string, Line>()
  #count = 0

  constructor(client: ZooKeeper, folder: string) {
    this.#client = client
    this.#folder = folder
  }

  /** @param width how many write at the same time, each to znodes of its own */
  async write(width: number, signal: AbortSignal): Promise<void> {
    const writer = async () => {
      while (!signal.aborted) await this.#story()
    }
    await Promise.all(Array.from({ length: width }, writer))
  }

  /** What is not as it was told to be. */
  async contradictions(observer: ZooKeeper): Promise<string[]> {
    await caughtUp(observer, this.#folder)
    const there = new Set((await observer.getChildren(this.#folder)).names)
    const found: string[] = []
    for (const [name, line] of this.#lines) {
      const { data } = there.has(name) ? await observer.getData(`${this.#folder}/${name}`) : { data: undefined }
      const value = data && String(Buffer.from(data))
      const wrong = contradiction(line, { there: there.has(name), value })
      if (wrong) found.push(`${this.#folder}/${name}: ${wrong} ${JSON.stringify({ line, value })}`)
    }
    return found
  }

  /** A znode is made, alone or with another one, written to twice, and sometimes deleted. */
  async #story(): Promise<void> {
    const number = this.#count++
    const name = `n${number}`
    const line: Line = { created: 'unknown', data: [] }
    this.#lines.set(name, line)
    const path = `${this.#folder}/${name}`
    if (number % 3 === 0) await this.#makePair(name, line)
    else line.created = await this.#settled(this.#client.create(path))
    if (line.created !== 'done') return
    for (const value of ['a', 'b']) {
      line.data.push({ value, outcome: await this.#settled(this.#client.setData(path, Buffer.from(value))) })
    }
    if (number % 4 === 0) line.deleted = await this.#settled(this.#client.delete(path))
  }

  /** Both are there or none is. */
  async #makePair(name: string, line: Line): Promise<void> {
    const other: Line = { created: 'unknown', data: [] }
    this.#lines.set(`${name}-twin`, other)
    const paths = [`${this.#folder}/${name}`, `${this.#folder}/${name}-twin`]
    line.created = await this.#settled(this.#client.multi(paths.map((path) => op.create(path, null))))
    other.created = line.created
  }

  async #settled(asked: Promise<unknown>): Promise<Outcome> {
    const outcome = await asked.then(
      () => 'done' as const,
      (error: unknown) => {
        if (!(error instanceof ZooKeeperError)) throw error
        return error.outcome
      },
    )
    this.tally[outcome]++
    return outcome
  }
}

function contradiction(line: Line, seen: { there: boolean; value: string | null | undefined }): string | undefined {
  const { created, deleted, data } = line
  const mustBe = created === 'done' && (deleted === undefined || ['refused', 'not-sent'].includes(deleted))
  const mustNotBe = ['refused', 'not-sent'].includes(created) || deleted === 'done'
  if (mustBe && !seen.there) return 'was made and is not there'
  if (mustNotBe && seen.there) return 'was not made, or was deleted, and is there'
  if (!seen.there) return undefined
  // What was done last, or anything after it of which nobody knows.
  const last = data.findLastIndex(({ outcome }) => outcome === 'done')
  const possible = [last < 0 ? null : data[last]?.value]
  for (const { value, outcome } of data.slice(last + 1)) if (outcome === 'unknown') possible.push(value)
  return possible.includes(seen.value) ? undefined : `should hold ${possible.join(' or ')}`
}
