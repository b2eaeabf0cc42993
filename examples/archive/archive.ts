/** One run of the demo: posts a job for each file below a folder, and waits until the last of them is done. */
import { randomUUID } from 'node:crypto'
import { type JobBoard, NotConnected, openBoard } from 'jobboard'
import { type Conductors, startConductors } from './conductors.ts'
import { type ArchiveFlow, archiveFlow } from './flow.ts'
import { aborted, type Interrupt } from './interrupt.ts'
import { isMemory, type Options } from './options.ts'
import { logbooksUri, makeOutput, type Output, targetOf } from './output.ts'
import { makePlace, type Place } from './place.ts'
import { post, untilConnected } from './posting.ts'
import { count, pathFromHere, printablePath, printableUri, shellWord } from './printable.ts'
import { Progress } from './progress.ts'
import { readTrash, type Summary, summarize } from './summary.ts'
import { Tally } from './tally.ts'
import { type Found, walk } from './walk.ts'

/** The end of a run. `alone`: no conductor is left. */
export type Ending = 'done' | 'interrupted' | 'alone'

export interface Result {
  readonly ending: Ending
  readonly summary: Summary
  readonly output: Output
  /** The URI of the logbooks. */
  readonly persistence: string
  /** The number of jobs that stay on a board after this run, if it is known, and their name there. */
  readonly left: { readonly jobs: number | undefined; readonly flow: string; readonly board: string }
}

/** The parts of one run. */
interface Run {
  readonly options: Options
  readonly place: Place
  readonly output: Output
  readonly persistence: string
  readonly board: JobBoard
  readonly flow: ArchiveFlow
  readonly tally: Tally
  readonly say: (line: string) => void
}

/** Runs the demo. @throws what opening a board and starting conductors throw; nothing has been done then */
export async function archive(options: Options, interrupt: Interrupt): Promise<Result> {
  const { signal } = interrupt
  const tally = new Tally()
  using progress = new Progress(process.stdout, () => tally.toString())
  const say = (line: string) => progress.say(line)
  await using place = await makePlace(options.board)
  await using board = await openBoard(place.board, { signal })
  sayWhenAway(board, say)
  const output = await makeOutput(options.out)
  const persistence = options.persistence ?? logbooksUri(output)
  // Other runs may share the board. A flow name for each run keeps conductors to the jobs of their own run.
  const flow = archiveFlow(`archive-${randomUUID().slice(0, 8)}`)
  const run: Run = { options, place, output, persistence, board, flow, tally, say }
  const assignment = { ...options, board: place.board, persistence, flow: flow.name }
  await using conductors = await startConductors(board, { ...assignment, say, signal })
  void aborted(interrupt.urgent).then(() => conductors.abort())

  say(`archiving ${pathFromHere(options.folder)} with ${conductors.who}`)
  const ending = await untilOver(run, { conductors, interrupt })
  const { seconds } = tally
  if (ending === 'interrupted') say('interrupted: what is under way is brought to its end, nothing new is begun')
  await conductors.stop()
  return { ending, output, persistence, ...(await lookBack(run, { ending, seconds, interrupt })) }
}

async function untilOver(run: Run, options: { conductors: Conductors; interrupt: Interrupt }): Promise<Ending> {
  const { conductors, interrupt } = options
  const over = new AbortController()
  const signal = AbortSignal.any([interrupt.signal, over.signal])
  run.tally.start()
  try {
    return await Promise.race([
      archiveAll(run, signal),
      aborted(interrupt.signal).then(() => 'interrupted' as const),
      conductors.allGone.then(() => 'alone' as const),
    ])
  } finally {
    over.abort()
  }
}

/** The number of posts under way at once: enough to keep the board busy. */
const POSTS_AT_ONCE = 16

async function archiveAll(run: Run, signal: AbortSignal): Promise<Ending> {
  const { options, place, output, board, tally } = run
  // The file of the board changes with every job.
  const found = walk(options.folder, { except: place.folder ? [output.folder, place.folder] : [output.folder] })
  const postFound = async () => {
    for await (const thing of found) await take(thing, run, signal)
  }
  try {
    await Promise.all(Array.from({ length: POSTS_AT_ONCE }, postFound))
    tally.complete = true
    run.say(`${count(tally.names.size, 'job')} posted`)
    await tally.ended()
    // A post whose answer was lost may be on the board twice. The second job finds nothing to do, but it must end, too.
    while (true) {
      const twins = await untilConnected(signal, () => tally.onBoard(board, { ensureFresh: true }))
      if (twins.length === 0) return 'done'
      await Promise.all(twins.map((job) => job.wait()))
    }
  } catch (error) {
    if (signal.aborted) return 'interrupted'
    throw error
  }
}

async function take({ path, kind, reason }: Found, run: Run, signal: AbortSignal): Promise<void> {
  const { options, place, output, board, flow, tally } = run
  const name = printablePath(path)
  if (kind === 'folder') tally.unlisted.push({ name, reason: `it cannot be listed: ${reason}` })
  else if (kind !== 'file') tally.leftOut.push({ name, reason: `a ${kind}` })
  if (kind !== 'file') return
  const uuid = randomUUID()
  const source = { folder: options.folder, path: path.toString('base64'), name }
  const store = { source, target: targetOf(output, uuid) }
  const first = tally.names.size === 0
  tally.names.set(uuid, name)
  tally.follow(await post({ uuid, name, store }, { board, flow, signal }))
  if (first && !isMemory(place.board)) run.say(waysToWatch(run, uuid))
}

function waysToWatch({ board, persistence }: Run, job: string): string {
  const where = `--board ${shellWord(board.uri)}`
  return [
    'watch it from another terminal:',
    `  npx jobboard jobs ${where}`,
    `  npx jobboard show ${job} ${where} --persistence ${shellWord(printableUri(persistence))}`,
  ].join('\n')
}

function sayWhenAway(board: JobBoard, say: (line: string) => void): void {
  let away = false
  board.on('state', ({ state }) => {
    if (state === 'disconnected' && !away) say(`${board.uri} does not answer; waiting for it`)
    if (state === 'connected' && away) say(`${board.uri} is back`)
    away = state === 'disconnected' || (away && state === 'lost')
  })
}

/** Returns the report of the run. */
async function lookBack(
  run: Run,
  options: { ending: Ending; seconds: number; interrupt: Interrupt },
): Promise<Pick<Result, 'summary' | 'left'>> {
  const { board, place, tally, output, flow } = run
  const over = options.ending === 'done'
  const reasons = await askAtTheEnd(() => readTrash(board, tally), run, { over, signal: options.interrupt.urgent })
  const summary = await summarize(output, { tally, reasons: reasons ?? new Map(), seconds: options.seconds, over })
  const nothingLeft = over || !place.isKept
  const look = () => tally.onBoard(board, { ensureFresh: board.connected })
  const jobs = nothingLeft ? [] : await askAtTheEnd(look, run, { over, signal: options.interrupt.urgent })
  return { summary, left: { jobs: jobs?.length, flow: flow.name, board: board.uri } }
}

/** Returns undefined when the board is away, unless all jobs have ended: then it waits for the board. */
async function askAtTheEnd<T>(
  ask: () => Promise<T>,
  { board }: Run,
  options: { over: boolean; signal: AbortSignal },
): Promise<T | undefined> {
  if (!options.over && !board.connected) return undefined
  try {
    return await (options.over ? untilConnected(options.signal, ask) : ask())
  } catch (error) {
    if (error instanceof NotConnected || options.signal.aborted) return undefined
    throw error
  }
}
