/** Words and limits of options. They are listed here because `--help` must not load the board. */
import type { CatchUp, KeyOptions, Overlap, Priority, Size } from '../../board/index.ts'
import type { FlowState } from '../../core/states.ts'

export const PRIORITY_CHOICES = [
  'VERY_HIGH',
  'HIGH',
  'NORMAL',
  'LOW',
  'VERY_LOW',
] as const satisfies readonly Priority[]
export const SIZE_CHOICES = ['small', 'medium', 'large'] as const satisfies readonly Size[]
/** What a post can do that finds its key taken. */
export const KEY_ON_CHOICES = ['ignore', 'replace'] as const satisfies readonly NonNullable<KeyOptions['on']>[]
export const FLOW_STATE_CHOICES = [
  'PENDING',
  'RUNNING',
  'SUCCESS',
  'FAILURE',
  'REVERTED',
  'SUSPENDING',
  'SUSPENDED',
  'RESUMING',
] as const satisfies readonly FlowState[]
export const LOG_LEVEL_CHOICES = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
/** The largest `maxAttempts` that a board accepts. */
export const MAX_ATTEMPTS = 1_000_000
/** The formats of drawings of flows. */
export const GRAPH_FORMATS = ['mermaid', 'dot', 'svg'] as const
export type GraphFormat = (typeof GRAPH_FORMATS)[number]
/** The default page size of `logbook list`. */
export const DEFAULT_PAGE_SIZE = 50
/** The ways in which `dev` can run ZooKeeper. */
export const LOG_FORMAT_CHOICES = ['auto', 'json', 'pretty'] as const
export type LogFormat = (typeof LOG_FORMAT_CHOICES)[number]
export const SERVER_CHOICES = ['package', 'docker'] as const
export const MAX_PORT = 65_535

/** The levels of people in the dashboard, and the ways in which its command signs them in by itself. */
export const LEVEL_CHOICES = ['read', 'operate', 'admin'] as const
export const AUTH_CHOICES = ['link', 'none'] as const
export const SHELL_CHOICES = ['bash', 'zsh', 'fish'] as const
export const CATCH_UP_CHOICES = ['none', 'latest', 'all'] as const satisfies readonly CatchUp[]
export const OVERLAP_CHOICES = [
  'skip',
  'queueOne',
  'queueAll',
  'cancelPrevious',
  'allow',
] as const satisfies readonly Overlap[]
