/**
 * The gauges of boards. One exporter answers them for all: a conductor that did would be one of many, and Prometheus would add up the same board several
 * times.
 *
 * Labels never carry ids, as those of `core/metrics.ts`. Of a limit the label is its kind, the part of the key before the first slash: keys name tenants.
 */
import type { Instrument } from '../../../core/metrics.ts'

export const BOARD_GAUGES = {
  jobboard_board_up: {
    type: 'gauge',
    help: 'Whether the board could be read: 1 or 0. There is nothing else of a board that could not.',
    labels: ['board'],
  },
  jobboard_board_paused: { type: 'gauge', help: 'Whether the board is paused: 1 or 0.', labels: ['board'] },
  jobboard_board_length: { type: 'gauge', help: 'The number of jobs on the board, in any state.', labels: ['board'] },
  jobboard_board_jobs: {
    type: 'gauge',
    help:
      'Jobs by flow and state: waiting (for an owner or a resource), limited (a limit has no room), delayed, blocked (by other jobs), running. ' +
      'At least so many where jobboard_board_complete is 0.',
    labels: ['board', 'flow', 'state'],
  },
  jobboard_board_oldest_waiting_seconds: {
    type: 'gauge',
    help: 'For how long the job has waited that has waited longest, since its post or since it was due. At least where jobboard_board_complete is 0.',
    labels: ['board', 'flow'],
  },
  jobboard_board_limit_waiting: {
    type: 'gauge',
    help: 'Jobs that wait for a limit, by the kind of its key: the part before the first slash.',
    labels: ['board', 'kind'],
  },
  jobboard_board_trash: {
    type: 'gauge',
    help: 'Jobs in the trash by flow. At least so many where jobboard_board_complete is 0.',
    labels: ['board', 'flow'],
  },
  jobboard_board_complete: {
    type: 'gauge',
    help: 'Whether all jobs, or all of the trash, were counted: 1, or 0 where the board is longer than what the exporter reads of it.',
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
    help: 'Active schedules whose next time is over by more than a minute.',
    labels: ['board'],
  },
} as const satisfies Readonly<Record<string, Instrument>>

export type BoardGauge = keyof typeof BOARD_GAUGES
