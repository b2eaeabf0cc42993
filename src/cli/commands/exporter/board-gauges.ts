/**
 * The gauges of a board. One exporter exports them, and not each conductor: Prometheus would add up the same board several times.
 *
 * Labels never contain ids, as those of `core/metrics.ts`. The label of a limit is its kind, the part of the key before the first slash:
 * whole keys may be the names of tenants.
 */
import type { Instrument } from '../../../core/metrics.ts'

export const BOARD_GAUGES = {
  jobboard_board_up: gauge('Whether the board could be read: 1 or 0. With 0, the board has no other gauge.'),
  jobboard_board_paused: gauge('Whether the board is paused: 1 or 0.'),
  jobboard_board_length: gauge('The number of jobs on the board, in any state.'),
  jobboard_board_jobs: gauge(
    'Jobs by flow and state: waiting (for an owner or a resource), limited (a limit has no room), delayed, blocked (by other jobs), running. ' +
      'A lower bound if jobboard_board_complete is 0.',
    'flow',
    'state',
  ),
  jobboard_board_oldest_waiting_seconds: gauge(
    'The age of the job that has waited longest, since its post, its return or its due time. A lower bound if jobboard_board_complete is 0.',
    'flow',
  ),
  jobboard_board_queue_jobs: gauge(
    'Jobs by queue and state, with the states of jobboard_board_jobs. A lower bound if jobboard_board_complete is 0.',
    'queue',
    'state',
  ),
  jobboard_board_queue_oldest_waiting_seconds: gauge(
    'The age of the job of a queue that has waited longest. A lower bound if jobboard_board_complete is 0.',
    'queue',
  ),
  jobboard_board_queue_paused: gauge(
    'Whether a queue is paused, by its name or a pattern: 1. Queues that are not paused have no such gauge.',
    'queue',
  ),
  jobboard_board_limit_waiting: gauge(
    'Jobs that wait for a limit, by the kind of its key: the part before the first slash.',
    'kind',
  ),
  jobboard_board_trash: gauge('Jobs in the trash by flow. A lower bound if jobboard_board_complete is 0.', 'flow'),
  jobboard_board_complete: gauge(
    'Whether all jobs, or all of the trash, were counted: 1; or 0 if there are more than the exporter reads.',
    'part',
  ),
  jobboard_board_conductors: gauge('Living conductors by state: busy, idle, paused, draining, aborting.', 'state'),
  jobboard_board_slots: gauge('The number of jobs that all conductors of the board can run at once.'),
  jobboard_board_slots_taken: gauge('The number of these slots that are taken.'),
  jobboard_board_schedules: gauge('Schedules by state: active, waiting, paused, ended, unreadable.', 'state'),
  jobboard_board_schedules_late: gauge('Active schedules that are late by more than a minute.'),
} satisfies Readonly<Record<string, Instrument>>

export type BoardGauge = keyof typeof BOARD_GAUGES

/** Returns a gauge with the label of its board before others. */
function gauge(help: string, ...labels: readonly string[]): Instrument {
  return { type: 'gauge', help, labels: ['board', ...labels] }
}
