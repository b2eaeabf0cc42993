/**
 * The worker of a child process: imports the module with the flows, makes its services once, and runs one task after the other.
 * Engine, logbook and claim stay in the process of the conductor.
 */
import { pino } from 'pino'
import { followSignals } from '../../core/async/abort.ts'
import { decode, encode, unstorableError } from '../../core/codec.ts'
import { InvalidArgument, MessageTooLarge } from '../../core/errors.ts'
import { describeError } from '../../core/failure.ts'
import type { Logger } from '../../core/log.ts'
import { formatBytes } from '../../core/memory-size.ts'
import { collectExports, exportNamed } from '../../core/module-exports.ts'
import { assertOptions, defined } from '../../core/options.ts'
import type { Tracer } from '../../core/tracing.ts'
import { mergeErrors } from '../../engine/internal.ts'
import {
  type AnyFlow,
  type ContextCheckpoint,
  type ContextDependencies,
  type ContextLimits,
  type ContextTakeOptions,
  compile,
  type EndedDependency,
  type ExecutableTask,
  encodeCheckpoint,
  flowDigest,
  isFlow,
  type RevertContext,
  toProgressMessage,
} from '../../flow/index.ts'
import type { OpenWorker, WorkContext } from '../../pool/index.ts'
import { loadOpenTelemetry } from '../../telemetry/internal.ts'
import { mergeServices } from '../services/merge.ts'
import { type OpenServices, openServices, servicesForRun } from '../services/open.ts'
import type { AtomNote, AtomQuestion, AtomRequest, AtomWorkerFacts, AtomWorkerSettings } from './atom-request.ts'

/** The signal of a question whose answer is always needed. */
const NEVER = new AbortController().signal

/** Opens the worker in a child. @throws what the module throws when it is imported, or its factory of services */
export const openWorker: OpenWorker = async (value) => {
  const settings = value as AtomWorkerSettings
  const imported = await Promise.all(
    settings.modules.map(async (name) => ({ name, exported: (await import(name)) as object })),
  )
  const flows = [...new Set(imported.flatMap(({ exported }) => collectExports(exported, isFlow)))]
  const exports = imported.map(({ name, exported }) => ({ name, services: exportNamed(exported, 'services') }))
  const services = mergeServices(exports.filter((each) => each.services !== undefined))
  const onError = (error: unknown) =>
    void process.stderr.write(`a service could not be disposed of: ${describeError(error)}\n`)
  const opened = await openServices(services, { onError })
  const facts: AtomWorkerFacts = {
    flows: flows.map((flow) => ({ name: flow.name, version: flow.version, digest: flowDigest(flow) })),
  }
  return {
    facts,
    run: (work, context) => runTraced(work as AtomRequest, { flows, opened, settings, context }),
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  }
}

interface AtomWork {
  readonly flows: readonly AnyFlow[]
  readonly opened: OpenServices
  readonly settings: AtomWorkerSettings
  readonly context: WorkContext
}

/**
 * Runs a task within the span of its call in the conductor. Only where that traces: then the API is loaded, and spans that the task starts go
 * where the SDK of this child sends them.
 */
async function runTraced(request: AtomRequest, work: AtomWork): Promise<Uint8Array> {
  const { trace } = request
  if (!trace) return runAtom(request, work)
  const tracer = await openTracer()
  return tracer ? tracer.within(trace, () => runAtom(request, work)) : runAtom(request, work)
}

let tracer: Promise<Tracer | undefined> | undefined

/** Loads the API once. A child that cannot import it, because only the application's own modules can, traces nothing. */
function openTracer(): Promise<Tracer | undefined> {
  tracer ??= loadOpenTelemetry().then(
    (telemetry) => telemetry.tracer,
    () => undefined,
  )
  return tracer
}

async function runAtom(request: AtomRequest, work: AtomWork): Promise<Uint8Array> {
  const atom = findTask(request, work.flows)
  const args = Object.fromEntries([
    ...Object.entries(Object(decode(request.args, 'msgpack'))),
    ...Object.entries(atom.inject ?? {}),
  ])
  // Services of a job are made for each task here: the tasks of a job may run in several children.
  const { run, fence, job, schedule, batch } = request
  const facts = { run, fence, job, schedule, batch, signal: work.context.signal }
  await using running = await servicesForRun(work.opened, facts)
  const ctx = createContext(request, { ...work, services: running.services })
  const keep = (value: unknown) => encodeResult(value, { atom: atom.name, how: request.how, ...work.settings })
  if (request.how === 'execute') {
    return await mergeErrors({
      before: () => atom.preExecute?.(args, ctx),
      work: async () => keep(await atom.execute(args, ctx)),
      after: () => atom.postExecute?.(args, ctx),
    })
  }
  return await mergeErrors({
    before: () => atom.preRevert?.(args, ctx),
    work: async () => keep(await atom.revert?.(args, ctx)),
    after: () => atom.postRevert?.(args, ctx),
  })
}

/** @throws InvalidArgument for a task that the module does not have; the handshake has excluded that for known flows */
function findTask({ flow, atom }: AtomRequest, flows: readonly AnyFlow[]): ExecutableTask {
  const found = flows.find(({ name, version }) => name === flow.name && version === flow.version)
  const task = found && compile(found).byName.get(atom)?.atom
  if (task?.kind === 'task') return task
  throw new InvalidArgument(`the module of the pool has no task ${atom} in flow ${flow.name} ${flow.version}`)
}

/** Takes tokens by the limits of the parent's board: it has the connection, and one line for the tasks of all of its children. */
function takeTokens(context: WorkContext): ContextLimits['take'] {
  return async (key, options = {}) => {
    assertOptions<ContextTakeOptions>(options, { cost: true, signal: true }, 'ctx.limits.take')
    const { signal, ...cost } = options
    using stop = followSignals([context.signal, signal])
    const question: AtomQuestion = { take: { key, ...cost } }
    await context.ask(question, { signal: stop.signal })
  }
}

/** Asks the parent how the jobs ended after which this one is run: it has the connections to the board and the logbooks. */
function readDependencies(context: WorkContext): ContextDependencies['read'] {
  return async () => {
    const question: AtomQuestion = { read: 'dependencies' }
    return decode(
      (await context.ask(question, { signal: context.signal })) as Uint8Array,
      'msgpack',
    ) as EndedDependency[]
  }
}

/** Returns the checkpoint of a task: what was saved came with the request, and the parent's run of the flow writes. */
function openCheckpoint({ atom, checkpoint }: AtomRequest, context: WorkContext): ContextCheckpoint {
  const save = async (value: unknown) => {
    const question: AtomQuestion = { save: encodeCheckpoint(value, `the checkpoint of task ${atom}`) }
    // Not the signal of the task: a task that has to stop saves how far it came.
    await context.ask(question, { signal: NEVER })
  }
  return {
    last: decode(checkpoint, 'msgpack'),
    save: (value) => {
      const saving = save(value)
      // A failed save for which the task does not wait must not end the process: the same holds in the process of the conductor.
      saving.catch(() => undefined)
      return saving
    },
  }
}

function createContext(request: AtomRequest, work: AtomWork & { readonly services: unknown }): RevertContext<unknown> {
  const { run, fence, job, schedule, batch, reverted } = request
  const { services, settings, context } = work
  let checkpoint: ContextCheckpoint | undefined
  const post = (note: AtomNote) => context.post(note)
  const destination = { write: (line: string) => post({ log: line }) }
  let log: Logger | undefined
  return {
    signal: context.signal,
    // Most tasks log nothing, and a logger takes longer to make than a small task takes.
    get log() {
      log ??= pino({ level: settings.logLevel, base: null, timestamp: false }, destination)
      return log
    },
    ...{ run, fence, job, schedule, batch, services },
    limits: { take: takeTokens(context) },
    dependencies: { read: readDependencies(context) },
    get checkpoint() {
      checkpoint ??= openCheckpoint(request, context)
      return checkpoint
    },
    progress: (done, message) => {
      if (typeof done === 'number') post({ progress: done, ...defined({ message: toProgressMessage(message) }) })
    },
    result: reverted && decode(reverted.result, 'msgpack'),
    failure: reverted?.failure,
    failures: reverted?.failures ?? [],
  }
}

function encodeResult(
  value: unknown,
  { atom, how, maxMessage }: { readonly atom: string; readonly how: AtomRequest['how']; readonly maxMessage: number },
): Uint8Array {
  const what = how === 'execute' ? `the result of task ${atom}` : `what the revert of ${atom} returned`
  let encoded: Uint8Array
  try {
    encoded = encode(value, 'msgpack')
  } catch (cause) {
    // The result of a revert is only shown to people: it must not make the revert fail.
    if (how === 'revert') return encode(undefined, 'msgpack')
    throw unstorableError(what, cause)
  }
  if (encoded.length <= maxMessage) return encoded
  if (how === 'revert') return encode(undefined, 'msgpack')
  throw new MessageTooLarge(
    `${what} has ${formatBytes(encoded.length)}, more than the ${formatBytes(maxMessage)} of pool.maxMessage: return the place where ` +
      'the data is stored',
  )
}
