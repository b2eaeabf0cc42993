/**
 * Who owned which job when, as the owners wrote it down, each line at the end of one file that all share. Nobody's board is
 * asked, so what it says is independent of them.
 *
 *     own JOB WHO SESSION      after the claim was granted
 *     free JOB WHO             before it is given back, or when its owner knows that it is lost
 *     done JOB WHO             after the job was consumed
 *     unsure JOB WHO           the answer was lost: it may have been consumed
 *     refused JOB WHO          settled too late: another owns it, or has done it
 *     expiring - WHO SESSION   from now on others may own what was claimed in that session
 */
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Claim, JobBoard } from '../../src/board/index.ts'
import { ClaimLost, NotConnected, OutcomeUnknown } from '../../src/core/errors.ts'

type Word = 'own' | 'free' | 'done' | 'unsure' | 'refused' | 'expiring'

export interface Judged {
  /** What must not be, in words. */
  readonly wrong: readonly string[]
  /** Jobs that were consumed, or may have been. */
  readonly ended: ReadonlySet<string>
  /** How many jobs each consumed. */
  readonly doneBy: ReadonlyMap<string, number>
}

export class OwnershipLog implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'jobboard-owners-'))
  readonly file: string = join(this.#folder, 'log')

  constructor() {
    writeFileSync(this.file, '')
  }

  write(word: Word, job: string, who: string, session: string | number = ''): void {
    appendFileSync(this.file, `${word} ${job} ${who} ${session}\n`)
  }

  judge(): Judged {
    const lines = readFileSync(this.file, 'utf8').trimEnd().split('\n')
    const owners = new Map<string, { who: string; session: string }>()
    const expired = new Set<string>()
    const ended = new Set<string>()
    const done = new Set<string>()
    const doneBy = new Map<string, number>()
    const wrong: string[] = []
    for (const line of lines) {
      const [word, job = '', who = '', session = ''] = line.split(' ')
      const owner = owners.get(job)
      switch (word) {
        case 'own':
          if (owner && !expired.has(`${owner.who} ${owner.session}`)) wrong.push(`${line}, but ${owner.who} owns it`)
          if (done.has(job)) wrong.push(`${line}, but it is done`)
          owners.set(job, { who, session })
          break
        case 'done':
          if (owner?.who !== who) wrong.push(`${line}, but ${owner?.who ?? 'nobody'} owns it`)
          if (done.has(job)) wrong.push(`${line}, a second time`)
          done.add(job)
          doneBy.set(who, (doneBy.get(who) ?? 0) + 1)
          ended.add(job)
          break
        case 'unsure':
          ended.add(job)
          break
        case 'expiring':
          expired.add(`${who} ${session}`)
      }
      if ((word === 'free' || word === 'done') && owner?.who === who) owners.delete(job)
    }
    return { wrong, ended, doneBy }
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Claims whatever it finds, gives every third job back once, and writes down what it owns. */
export class Worker {
  readonly #board: JobBoard
  readonly #log: OwnershipLog
  readonly #stop = new AbortController()
  readonly #givenBack = new Set<string>()
  readonly #ended: Promise<void>
  #session = 1
  #count = 0

  constructor(board: JobBoard, log: OwnershipLog) {
    this.#board = board
    this.#log = log
    board.on('state', ({ state }) => {
      if (state === 'lost') this.#session += 1
    })
    this.#ended = this.#work()
  }

  /** Said before its session is ended behind its back. */
  expiring(): void {
    this.#log.write('expiring', '-', this.#board.who, this.#session)
  }

  async rest(): Promise<void> {
    this.#stop.abort()
    await this.#ended
  }

  async #work(): Promise<void> {
    for await (const claim of this.#board.claims({ signal: this.#stop.signal })) {
      if (!claim.lost.aborted) await this.#do(claim)
    }
  }

  async #do(claim: Claim): Promise<void> {
    const { uuid } = claim.job
    const write = (word: Word) => this.#log.write(word, uuid, claim.who, this.#session)
    claim.lost.addEventListener('abort', () => write('free'))
    write('own')
    this.#count += 1
    // A round trip, so that it is owned for a while.
    const owner = await untilConnected(() => this.#board.findOwner(claim.job))
    if (owner !== claim.who && !claim.lost.aborted) throw new Error(`${claim.job} is owned by ${owner}`)
    const abandons = this.#count % 3 === 0 && !this.#givenBack.has(uuid)
    if (abandons) {
      this.#givenBack.add(uuid)
      if (!claim.lost.aborted) write('free')
    }
    try {
      await untilConnected(() => (abandons ? claim.abandon() : claim.consume()))
      if (!abandons) write('done')
    } catch (error) {
      if (error instanceof OutcomeUnknown && !abandons) write('unsure')
      else if (error instanceof ClaimLost || error instanceof OutcomeUnknown) write('refused')
      else throw error
    }
  }
}

async function untilConnected<T>(ask: () => Promise<T>): Promise<T> {
  while (true) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof NotConnected)) throw error
    }
  }
}
