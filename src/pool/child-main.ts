/**
 * The program of a child: opens the worker of a module, and does one piece of work after the other.
 *
 *     node child-main.js SILENCE_MS MESSAGE_LIMIT
 *
 * The thread of the lifeline starts before the module is imported, so that a child whose import never ends still ends with the pool. Stop
 * signals are ignored, because Ctrl-C and service managers send them to all processes at once, and tasks go on while the conductor drains.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { Socket } from 'node:net'
import { Worker as Thread } from 'node:worker_threads'
import { asError, InvalidState } from '../core/errors.ts'
import { failureOf, toErrorOfClass } from '../core/failure.ts'
import { Channel } from './channel.ts'
import {
  CHANNEL_FD,
  type FromChild,
  LIFELINE_FD,
  type OpenWorker,
  PROTOCOL_VERSION,
  type ToChild,
  type WorkContext,
  type Worker,
} from './protocol.ts'
import { Questions } from './questions.ts'

/** The exit code after an error that belongs to no piece of work. */
const FAULT_EXIT_CODE = 70

interface WorkUnderWay {
  readonly number: number
  readonly stop: AbortController
  readonly questions: Questions
}

/** The number of the work that the running code belongs to. */
const workOfCode = new AsyncLocalStorage<number>()

let worker: Worker | undefined
let underWay: WorkUnderWay | undefined

const silenceMs = Number(process.argv[2])
const lifeline = new Thread(new URL('./lifeline.mjs', import.meta.url), {
  workerData: { fd: LIFELINE_FD, silenceMs: silenceMs > 0 ? silenceMs : Number.POSITIVE_INFINITY },
  execArgv: [],
  env: {},
})
lifeline.unref()

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
process.on('uncaughtException', (error) => void endAfterFault(error))
process.on('unhandledRejection', (reason) => void endAfterFault(reason))

const channel = new Channel(new Socket({ fd: CHANNEL_FD }), {
  maxReceived: Number.POSITIVE_INFINITY,
  maxSent: Number(process.argv[3]),
  onMessage: (message) => void receive(message as ToChild),
  onFault: killGroup,
  onClose: killGroup,
})
channel.open()

/** Kills this process and the processes that it has started: its pool has ended. */
function killGroup(): void {
  try {
    process.kill(-process.pid, 'SIGKILL')
  } catch {
    process.kill(process.pid, 'SIGKILL')
  }
}

let isEnding = false

async function receive(message: ToChild): Promise<void> {
  switch (message.kind) {
    case 'start':
      return start(message)
    case 'run':
      return run(message)
    case 'cancel':
      if (underWay?.number === message.number) underWay.stop.abort(toErrorOfClass(message.reason))
      return
    case 'answer':
      if (underWay?.number === message.number) underWay.questions.onAnswer(message)
      return
    case 'terminate':
      return process.exit(1)
    case 'retire':
      return retire()
  }
}

async function start({ worker: module, settings }: Extract<ToChild, { kind: 'start' }>): Promise<void> {
  try {
    const { openWorker }: { openWorker: OpenWorker } = await import(module)
    worker = await openWorker(settings)
    await send({ kind: 'ready', protocol: PROTOCOL_VERSION, facts: worker.facts })
  } catch (error) {
    await send({ kind: 'refused', failure: failureOf(error) })
    process.exit(1)
  }
}

async function run({ number, work }: Extract<ToChild, { kind: 'run' }>): Promise<void> {
  const stop = new AbortController()
  const questions = new Questions(number, send)
  underWay = { number, stop, questions }
  const post = (note: unknown) => {
    if (underWay?.number === number) void send({ kind: 'note', number, note }).catch(() => undefined)
  }
  try {
    if (!worker) throw new Error('the worker is not open')
    void send({ kind: 'begun', number }).catch(() => undefined)
    const { run } = worker
    const ask: WorkContext['ask'] = async (content, options) => {
      if (underWay?.number !== number) throw new InvalidState('the work that asks is over')
      return questions.ask(content, options)
    }
    const result = await workOfCode.run(number, () => run(work, { signal: stop.signal, post, ask }))
    if (underWay?.number === number) await send({ kind: 'done', number, result })
  } catch (error) {
    if (underWay?.number === number) await send({ kind: 'failed', number, failure: failureOf(error), isLast: false })
  } finally {
    if (underWay?.number === number) underWay = undefined
  }
}

async function retire(): Promise<void> {
  try {
    await worker?.[Symbol.asyncDispose]()
    process.exit(0)
  } catch (error) {
    printError(error)
    process.exit(1)
  }
}

/**
 * Ends the process, because the fault may have left any state half changed. The work under way has failed only if its own code has thrown: an
 * error of earlier work, or of a service, does not count.
 */
async function endAfterFault(fault: unknown): Promise<void> {
  // Another fault would end the process before the first one is sent.
  if (isEnding) return
  isEnding = true
  const { number } = underWay ?? {}
  const isOwn = workOfCode.getStore() === number
  underWay = undefined
  printError(fault)
  const failure = failureOf(fault)
  if (number !== undefined)
    await send(isOwn ? { kind: 'failed', number, failure, isLast: true } : { kind: 'fault', number, failure }).catch(
      () => undefined,
    )
  process.exit(FAULT_EXIT_CODE)
}

/** Prints the stack: the pool logs it, and adds it to the failure of a child that dies. */
function printError(error: unknown): void {
  process.stderr.write(`${asError(error).stack}\n`)
}

/** Resolves when the message is written: a process that ends before that loses it. */
function send(message: FromChild): Promise<void> {
  return channel.send(message)
}
