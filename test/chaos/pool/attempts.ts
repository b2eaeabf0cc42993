/** What the attempts of the jobs have noted in their files, and whether the conductors have charged the right jobs. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Note {
  readonly word: string
  readonly pid: number
  readonly run: number
  /** When the process was started: its id is used again. */
  readonly start: string
}

export interface AttemptSummary {
  /** Attempts that began while another of the same job was under way. */
  readonly overlaps: readonly string[]
  /** Jobs that have not ended exactly once. */
  readonly notOnce: readonly string[]
  /** The processes that have worked, or were started by those, and that live. */
  readonly living: readonly number[]
  readonly counts: Readonly<Record<string, number>>
}

export class Attempts {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  summarize(jobs: number): AttemptSummary {
    const notes = Array.from({ length: jobs }, (_, n) => this.#notesOf(n))
    const all = notes.flat()
    const ends = notes.map((each) => each.filter(({ word }) => word === 'end').length)
    const counts: Record<string, number> = { jobs }
    for (const { word } of all) counts[word] = (counts[word] ?? 0) + 1
    for (const [, settled = ''] of this.#settlements()) counts[settled] = (counts[settled] ?? 0) + 1
    const children = this.#linesOf('children').map(parseNote)
    const living = [...all, ...children].filter(({ pid, start }) => start !== 'dead' && startOf(pid) === start)
    return {
      overlaps: this.#linesOf('wrong'),
      notOnce: ends.flatMap((count, n) => (count === 1 ? [] : [`job ${n} has ended ${count} times`])),
      living: [...new Set(living.map(({ pid }) => pid))],
      counts: { ...counts, children: children.length },
    }
  }

  /**
   * Returns the failed runs of jobs that neither were poisoned in that run nor worked in a child that the test has killed.
   *
   * @param options.killed the children that were killed, each with its process id and its start
   */
  wronglyCharged({ killed }: { readonly killed: ReadonlySet<string> }): string[] {
    return this.#settlements().flatMap(([name = '', settled = '', run = '', ...why]) => {
      if (settled !== 'charged') return []
      const notes = this.#notesOf(Number(name.slice('job-'.length))).filter((note) => note.run === Number(run))
      const isJust = notes.some(({ word, pid, start }) => word === 'poison' || killed.has(`${pid} ${start}`))
      return isJust ? [] : [`${name} in run ${run}: ${why.join(' ')}`]
    })
  }

  #notesOf(n: number): Note[] {
    return this.#linesOf(join('jobs', String(n))).map(parseNote)
  }

  #settlements(): string[][] {
    return this.#linesOf('settled').map((line) => line.split(' '))
  }

  #linesOf(name: string): string[] {
    const file = join(this.#folder, name)
    return existsSync(file)
      ? readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : []
  }
}

function parseNote(line: string): Note {
  const [word = '', pid, run, start = 'dead'] = line.split(' ')
  return { word, pid: Number(pid), run: Number(run), start }
}

/** Returns when a process was started, in ticks of the system; `dead` if it has ended. */
export function startOf(pid: number): string {
  try {
    const [, fields = ''] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
    const [state = 'X', ...rest] = fields.split(' ')
    return 'ZX'.includes(state) ? 'dead' : (rest[18] ?? 'dead')
  } catch {
    return 'dead'
  }
}
