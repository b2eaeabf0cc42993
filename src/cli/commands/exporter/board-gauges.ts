/**
 * The gauges of a board. One exporter exports them, and not each conductor: Prometheus would add up the same board several times.
 *
 * Labels never contain ids, as those of `core/metrics.ts`. The label of a limit is its kind, the part of the key before the first slash:
 * whole keys may be the names of tenants.
 */
import type { Instrument } from '../../../core/metrics.ts'

export const BOARD_GAUGES = {
  jobboard_board_up: {
    type: 'gauge',
    help: 'Whether the board could be read: 1 or 0. With 0, the board has no other gauge.',
    labels: ['board'],
  },
  jobboard_board_paused: { type: 'gauge', help: 'Whether the board is paused: 1 or 0.', labels: ['board'] },
  jobboard_board_length: { type: 'gauge', help: 'The number of jobs on the board, in any state.', labels: ['board'] },
  jobboard_board_jobs: {
    type: 'gauge',
    help:
      'Jobs by flow and state: waiting (for an owner or a resource), limited (a limit has no room), delayed, blocked (by other jobs), running. ' +
      'A lower bound if jobboard_board_complete is 0.',
    labels: ['board', 'flow', 'state'],
  },
  jobboard_board_oldest_waiting_seconds: {
    type: 'gauge',
    help: 'The age of the job that has waited longest, since its post, its return or its due time. A lower bound if jobboard_board_complete is 0.',
    labels: ['board', 'flow'],
  },
  jobboard_board_limit_waiting: {
    type: 'gauge',
    help: 'Jobs that wait for a limit, by the kind of its key: the part before the first slash.',
    labels: ['board', 'kind'],
  },
  jobboard_board_trash: {
    type: 'gauge',
    help: 'Jobs in the trash by flow. A lower bound if jobboard_board_complete is 0.',
    labels: ['board', 'flow'],
  },
  jobboard_board_complete: {
    type: 'gauge',
    help: 'Whether all jobs, or all of the trash, were counted: 1; or 0 if there are more than the exporter reads.',
    labels: ['board', 'part'],
  },
  jobboard_board_conductors: {
    type: 'gauge',
    help: 'Living conductors by state: busy, idle, paused, draining, aborting.',
    labels: ['board', 'state'],
  },
  jobboard_board_slots: {
    type: 'gauge',
    help: 'The number of jobs that all conductors of the board can run at once.',
    labels: ['board'],
  },
  jobboard_board_slots_taken: { type: 'gauge', help: 'The number of these slots that are taken.', labels: ['board'] },
  jobboard_board_schedules: {
    type: 'gauge',
    help: 'Schedules by state: active, waiting, paused, ended, unreadable.',
    labels: ['board', 'state'],
  },
  jobboard_board_schedules_late: {
    type: 'gauge',
    help: 'Active schedules that are late by more than a minute.',
    labels: ['board'],
  },
} as const satisfies Readonly<Record<string, Instrument>>

export type BoardGauge = keyof typeof BOARD_GAUGES
