/** The options of a pool of child processes, their defaults, and their checks. */
import { availableParallelism } from 'node:os'
import { InvalidArgument } from '../core/errors.ts'
import { type MemorySize, toBytes } from '../core/memory-size.ts'
import { assertOptions, type KnownOptions } from '../core/options.ts'
import { type Duration, toMilliseconds } from '../core/time.ts'
import { childEnvironment, toVariableNames } from './environment.ts'

/** The size of a pool and the limits of its children, as users set them. */
export interface PoolLimits {
  /** The number of children that are kept ready; 1 by default. */
  readonly min?: number
  /** The greatest number of children; by default the number of processors, and at least `min`. */
  readonly max?: number
  /** The number of tasks after which a child is replaced; by default never. */
  readonly maxTasks?: number
  /** The age at which a child is replaced, between two tasks; by default never. */
  readonly maxAge?: Duration
  /**
   * The memory that a child may use. A child that uses more is replaced between two tasks; during a task it is killed, and the task fails
   * with OutOfMemory. No limit by default.
   */
  readonly memory?: MemorySize
  /** The time in which a child has to be ready; 30 s by default. */
  readonly startTimeout?: Duration
  /** The time that a task has to stop after its signal has fired, before its child is killed; 5 s by default. */
  readonly grace?: Duration
  /** The limit of the arguments and of the result of a task, in bytes; 16 MB by default. */
  readonly maxMessage?: MemorySize
  /**
   * The names of further environment variables that children get, as in `['DATABASE_URL', 'AWS_*']`: by default only what programs need to
   * run, such as PATH, HOME and TZ.
   */
  readonly env?: readonly string[]
  /** Options of Node for the children; by default the options of this process, without its inspector. */
  readonly execArgv?: readonly string[]
}

export const POOL_LIMITS: KnownOptions<PoolLimits> = {
  min: true,
  max: true,
  maxTasks: true,
  maxAge: true,
  memory: true,
  startTimeout: true,
  grace: true,
  maxMessage: true,
  env: true,
  execArgv: true,
}

/** The checked options, in milliseconds and bytes. */
export interface PoolSettings {
  readonly min: number
  readonly max: number
  readonly maxTasks: number
  readonly maxAgeMs: number
  readonly memory: number | undefined
  readonly startTimeoutMs: number
  readonly graceMs: number
  readonly maxMessage: number
  readonly env: NodeJS.ProcessEnv
  readonly execArgv: readonly string[]
}

/** The smallest limit of messages: each message has some fields of its own. */
const MIN_MAX_MESSAGE = 1_024

/** Checks the options and adds the defaults. @throws InvalidArgument naming the invalid option and a valid value */
export function poolSettings(limits: PoolLimits): PoolSettings {
  assertOptions(limits, POOL_LIMITS, 'a pool')
  const { startTimeout = '30s', grace = '5s', memory, maxAge, maxMessage = '16MB', maxTasks } = limits
  const min = toCount(limits.min ?? 1, { what: 'min', least: 0 })
  const max = toCount(limits.max ?? Math.max(min, availableParallelism()), { what: 'max', least: 1 })
  if (min > max) throw new InvalidArgument(`pool.min must not be greater than pool.max, got ${min} and ${max}`)
  return {
    ...{ min, max },
    maxTasks: maxTasks === undefined ? Number.POSITIVE_INFINITY : toCount(maxTasks, { what: 'maxTasks', least: 1 }),
    maxAgeMs: maxAge === undefined ? Number.POSITIVE_INFINITY : toMilliseconds(maxAge, 'pool.maxAge'),
    memory: memory === undefined ? undefined : toBytes(memory, { what: 'pool.memory' }),
    startTimeoutMs: toMilliseconds(startTimeout, 'pool.startTimeout'),
    graceMs: toMilliseconds(grace, 'pool.grace'),
    maxMessage: toBytes(maxMessage, { what: 'pool.maxMessage', least: MIN_MAX_MESSAGE }),
    env: childEnvironment(process.env, limits.env === undefined ? [] : toVariableNames(limits.env)),
    execArgv: limits.execArgv ?? inheritedExecArgv(),
  }
}

function toCount(value: number, { what, least }: { readonly what: string; readonly least: number }): number {
  if (Number.isSafeInteger(value) && value >= least) return value
  throw new InvalidArgument(`pool.${what} must be a whole number from ${least}, got ${value}`)
}

/** Returns the options of this process: they carry the loaders of TypeScript. Two processes cannot share an inspector. */
function inheritedExecArgv(): readonly string[] {
  return process.execArgv.filter((option) => !/^--(inspect|debug|max-old-space-size)/.test(option))
}
