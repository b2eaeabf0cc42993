/**
 * The tools for tests of flows, without a server: `jobboard/testing`. A workbench (board, logbooks, a clock to turn by hand, owners
 * that die), a spy on any board, and a task by itself. Knows no test runner, and works with each.
 */

export { withServices } from '../conductor/index.ts'
export type { AlarmKind } from '../core/time.ts'
export { BoardSpy, type JobEventName, type SpiedEvent, type SpyOptions, spyOn } from './board-spy.ts'
export { type FakeContext, type FakeContextOptions, fakeContext } from './fake-context.ts'
export { ManualClock, type SetAlarm } from './hand-clock.ts'
export { revertTask, runTask } from './run-task.ts'
export {
  type CrashPoint,
  type Drained,
  type DrainOptions,
  Workbench,
  type WorkbenchOptions,
  workbench,
} from './workbench.ts'
