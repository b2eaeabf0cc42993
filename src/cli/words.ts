/** Words and limits of options. Spelt out here, because `--help` must not have to load the board. */
import type { Priority, Size } from '../board/index.ts'
import type { FlowState } from '../core/states.ts'

export const PRIORITY_WORDS = ['VERY_HIGH', 'HIGH', 'NORMAL', 'LOW', 'VERY_LOW'] as const satisfies readonly Priority[]
export const SIZE_WORDS = ['small', 'medium', 'large'] as const satisfies readonly Size[]
export const FLOW_STATE_WORDS = [
  'PENDING',
  'RUNNING',
  'SUCCESS',
  'FAILURE',
  'REVERTED',
  'SUSPENDING',
  'SUSPENDED',
  'RESUMING',
] as const satisfies readonly FlowState[]
export const LEVEL_WORDS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
/** What a board takes for `maxAttempts`. */
export const MOST_ATTEMPTS = 10
/** Of drawings of flows. */
export const GRAPH_FORMATS = ['mermaid', 'dot'] as const
/** Of `logbook list`. */
export const DEFAULT_PAGE = 50
/** What `dev` can run ZooKeeper with. */
export const SERVER_WORDS = ['package', 'docker'] as const
export const LAST_PORT = 65_535
export const SHELL_WORDS = ['bash', 'zsh', 'fish'] as const
