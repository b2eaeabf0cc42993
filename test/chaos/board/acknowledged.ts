/** What the processes of `power-cut-child.ts` have said, held against a board and logbooks that were opened after a power cut. */
import type { EndedJob, Job, JobBoard } from '../../../src/board/index.ts'
import type { LogBook, Persistence } from '../../../src/persistence/index.ts'
import { all } from '../../board/jobs.ts'

/** What was found. */
export interface Findings {
  /** What must never be. */
  readonly wrong: string[]
  /** What was acknowledged, and is not there. */
  readonly lost: string[]
}

/** What was said of one job. */
interface Account {
  /** Words such as `posted` and `consume`. */
  readonly said: Set<string>
  readonly abandoned: number
  /** The newest run that was acknowledged. */
  readonly run: number
  /** The newest run that has acquired the logbook. */
  readonly writer: number
  /** The atoms that were begun, and those that were acknowledged. */
  readonly begun: Set<string>
  readonly recorded: Set<string>
}

/** Sorts lines by their jobs. */
export function readAccounts(lines: readonly string[]): Map<string, Account> {
  const accounts = new Map<string, Account>()
  for (const line of lines) {
    const [word = '', uuid = '', more = ''] = line.split(' ')
    const before = accounts.get(uuid) ?? {
      ...{ said: new Set(), abandoned: 0, run: 0, writer: 0, begun: new Set(), recorded: new Set() },
    }
    before.said.add(word)
    if (word === 'record') before.begun.add(more)
    if (word === 'recorded') before.recorded.add(more)
    accounts.set(uuid, {
      ...before,
      abandoned: before.abandoned + Number(word === 'abandoned'),
      run: word === 'claimed' ? Math.max(before.run, Number(more)) : before.run,
      writer: word === 'acquired' ? Math.max(before.writer, Number(more)) : before.writer,
    })
  }
  return accounts
}

/** Compares what was said with a board, and consumes the jobs that it has. */
export async function checkBoard(board: JobBoard, accounts: ReadonlyMap<string, Account>): Promise<Findings> {
  const findings: Findings = { wrong: [], lost: [] }
  const jobs = await all(board.jobs({ ensureFresh: true }))
  const trashed = (await all(board.trashed())).map(({ uuid }) => uuid)
  const ended = await board.history({ limit: 10_000 })
  const there = new Map(jobs.map((job) => [job.uuid, job]))
  for (const [place, uuids] of [
    ['on the board', jobs.map(({ uuid }) => uuid)],
    ['in the trash', trashed],
    ['in the history', ended.map(({ uuid }) => uuid)],
    ['on the board and in the trash', [...there.keys(), ...trashed]],
    ['on the board and in the history', [...there.keys(), ...ended.map(({ uuid }) => uuid)]],
  ] as const)
    for (const uuid of repeated(uuids)) findings.wrong.push(`${uuid} is twice ${place}`)
  const ends = new Map(ended.map((each) => [each.uuid, each]))
  for (const uuid of new Set([...there.keys(), ...trashed, ...ends.keys()]))
    if (!accounts.has(uuid)) findings.wrong.push(`${uuid} is there, and was never posted`)
  for (const [uuid, account] of accounts)
    checkJob(uuid, account, { job: there.get(uuid), end: ends.get(uuid), isTrashed: trashed.includes(uuid), findings })
  await claimAndConsume(board, jobs, accounts, findings)
  return findings
}

interface Seen {
  readonly job: Job | undefined
  readonly end: EndedJob | undefined
  readonly isTrashed: boolean
  readonly findings: Findings
}

function checkJob(uuid: string, { said, abandoned, run }: Account, { job, end, isTrashed, findings }: Seen): void {
  const { wrong, lost } = findings
  const outcome = job ? 'on the board' : isTrashed ? 'trashed' : end?.outcome === 'COMPLETE' ? 'consumed' : 'nowhere'
  if (isTrashed !== (end?.outcome === 'TRASHED'))
    wrong.push(`${uuid} is in the trash, or in the history, but not in both`)
  if (outcome === 'consumed' && !said.has('consume'))
    wrong.push(`${uuid} was consumed, and no process has asked for that`)
  if (outcome === 'trashed' && !said.has('trash')) wrong.push(`${uuid} was trashed by nobody`)
  if (said.has('consumed') && outcome !== 'consumed') lost.push(`${uuid} was consumed, and is ${outcome}`)
  if (said.has('trashed') && outcome !== 'trashed') lost.push(`${uuid} was trashed, and is ${outcome}`)
  if (said.has('posted') && outcome === 'nowhere') lost.push(`${uuid} was posted, and is nowhere`)
  if (!job) return
  const returned = job.attempts.filter(({ ended }) => ended === 'returned').length
  if (returned < abandoned) lost.push(`${uuid} was abandoned ${abandoned} times, and has ${returned} such attempts`)
  if (job.runs < run) lost.push(`run ${run} of ${uuid} was claimed, and it has ${job.runs} runs`)
}

/** Claims each job once more: its run must be a new one. */
async function claimAndConsume(
  board: JobBoard,
  jobs: readonly Job[],
  accounts: ReadonlyMap<string, Account>,
  { wrong, lost }: Findings,
): Promise<void> {
  const waiting = new Set(jobs.map(({ uuid }) => uuid))
  // What a process held whose lock file is not on the disk is free when its session has ended, which takes long here.
  await Promise.all(jobs.map((job) => job.state === 'CLAIMED' && board.release(job)))
  while (waiting.size > 0) {
    const claims = await board.claimNext({ max: waiting.size })
    for (const { job, run: next } of claims) {
      if (!waiting.delete(job.uuid)) wrong.push(`${job.uuid} was claimed after it had ended`)
      const { run = 0, writer = 0 } = accounts.get(job.uuid) ?? {}
      if (next <= Math.max(run, writer)) lost.push(`run ${run} of ${job.uuid} was claimed, and the next one is ${next}`)
    }
    await Promise.all(claims.map((claim) => claim.consume()))
  }
  for (const { uuid } of await all(board.jobs({ ensureFresh: true })))
    wrong.push(`${uuid} is on the board after its end`)
}

/** Compares what was said with logbooks. */
export async function checkBooks(books: Persistence, accounts: ReadonlyMap<string, Account>): Promise<Findings> {
  const findings: Findings = { wrong: [], lost: [] }
  const uuids = (await all(books.listBooks())).map(({ uuid }) => uuid)
  for (const uuid of repeated(uuids)) findings.wrong.push(`there are two books ${uuid}`)
  for (const [uuid, account] of accounts)
    checkBook(uuid, account, uuids.includes(uuid) ? await books.getBook(uuid) : undefined, findings)
  return findings
}

function checkBook(
  uuid: string,
  { said, writer, begun, recorded }: Account,
  book: LogBook | undefined,
  { wrong, lost }: Findings,
): void {
  const flow = book?.flows[0]
  const atoms = new Set(flow?.atoms.map(({ name }) => name))
  if (book && !said.has('acquire')) wrong.push(`nobody has made the book ${uuid}`)
  if ((book?.flows.length ?? 1) !== 1) wrong.push(`the book ${uuid} has ${book?.flows.length} flows`)
  if ((flow?.run ?? 0) < writer) lost.push(`run ${writer} has acquired the book ${uuid}, which has run ${flow?.run}`)
  for (const name of recorded) if (!atoms.has(name)) lost.push(`the record ${name} of ${uuid} is lost`)
  for (const name of atoms) if (!begun.has(name)) wrong.push(`nobody has written the record ${name} of ${uuid}`)
}

function repeated(values: readonly string[]): string[] {
  return values.filter((value, index) => values.indexOf(value) !== index)
}
