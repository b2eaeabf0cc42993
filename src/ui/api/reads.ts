/** The routes that read a board and its jobs. */
import { z } from 'zod'
import type { Job } from '../../board/index.ts'
import { boardInternals } from '../../board/internal.ts'
import { readRecord } from '../../conductor/internal.ts'
import type { FlowDetail } from '../../persistence/index.ts'
import { redactResults } from '../../views/index.ts'
import { findJob, readJobDetail } from '../boards/job-detail.ts'
import { listJobs, pageOfHistory, readTrash, SCAN_JOBS } from '../boards/job-list.ts'
import { readOverview } from '../boards/overview.ts'
import { groupTrash } from '../boards/trash-groups.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import { overview, trashGroups } from '../wire/board.ts'
import { jobDetail, jobPage, jobValues } from '../wire/jobs.ts'
import { boardOf, searchOf, uuidOf } from './board-of.ts'
import { afterQuery, type Call, defineRoute, limitQuery, type Route, searchQuery, waitOf } from './route.ts'

const listQuery = z.object({ q: searchQuery, after: afterQuery, limit: limitQuery({ most: 500, by: 50 }) })
/** The time for which the trash is read to group it: it is kept for some seconds. */
const GROUPS_MS = 1_000

function optionsOf({ services, request }: Pick<Call<unknown, unknown>, 'services' | 'request'>) {
  return { redaction: services.redaction, waitMs: waitOf({ request }) }
}

export const READS: readonly Route[] = [
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/overview', summary: 'The state of a board', answer: overview },
    handle: async (call) => readOverview(boardOf(call), optionsOf(call)),
  }),
  defineRoute({
    ...{
      method: 'GET',
      path: '/boards/:board/jobs',
      summary: 'Jobs that a search finds',
      query: listQuery,
      answer: jobPage,
    },
    handle: async (call) => {
      const { q, after, limit } = call.query
      return listJobs(boardOf(call), { search: searchOf(call, q), after, limit, ...optionsOf(call) })
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/jobs/:uuid', summary: 'One job, wherever it is', answer: jobDetail },
    handle: async (call) => readJobDetail(boardOf(call), uuidOf(call), call.services.redaction),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/jobs/:uuid/values', summary: 'The store and the results of a job' },
    ...{ values: true, answer: jobValues },
    handle: async (call) => {
      const { redaction } = call.services
      const viewed = boardOf(call)
      const found = await findJob(viewed, uuidOf(call))
      const clean = (values: object) => redactResults(values, redaction)
      const job = found.place === 'board' ? found.job : found.place === 'trash' ? found.trashed : undefined
      const store = clean(job?.details.store ?? {})
      const record =
        found.place === 'board'
          ? await readFlow(viewed, found.job)
          : found.place === 'history'
            ? undefined
            : found.record?.flow
      if (record) return { store, results: clean(resultsOf(record)) }
      if (found.place !== 'history') return { store }
      const kept = await viewed.board.result(found.ended.uuid, { timeout: '1s' }).catch(() => undefined)
      return kept ? { store, results: clean(kept.results) } : { store }
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/trash', summary: 'Jobs in the trash, newest first' },
    ...{ query: listQuery, answer: jobPage },
    handle: async (call) => {
      const { q, after, limit } = call.query
      const viewed = boardOf(call)
      await viewed.touch()
      return readTrash(viewed, { search: searchOf(call, q), after, limit, redaction: call.services.redaction })
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/trash/groups', summary: 'The trash by reasons', answer: trashGroups },
    handle: async (call) => {
      const viewed = boardOf(call)
      await viewed.touch()
      const read = async () => {
        const all = { limit: SCAN_JOBS, most: SCAN_JOBS, timeMs: GROUPS_MS, accept: () => true, newestFirst: true }
        const { items, looked, total, next } = await boardInternals(viewed.board).trashPage(all)
        return { groups: groupTrash(items, call.services.redaction).slice(0, 500), scan: { looked, total, next } }
      }
      return viewed.cache.get('trash-groups', { minAgeMs: 2_000, maxAgeMs: 30_000 }, read)
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/history', summary: 'Jobs that have ended, newest first' },
    ...{ query: listQuery, answer: jobPage },
    handle: async (call) => {
      const { q, after, limit } = call.query
      const viewed = boardOf(call)
      await viewed.touch()
      const search = searchOf(call, q)
      const isWanted = () => true
      return pageOfHistory(viewed, { search, after, limit, redaction: call.services.redaction, isWanted })
    },
  }),
]

async function readFlow({ persistence }: ViewedBoard, { uuid, book }: Job): Promise<FlowDetail | undefined> {
  return (await readRecord(uuid, book.uuid, persistence).catch(() => undefined))?.flow
}

function resultsOf({ atoms }: FlowDetail): Record<string, unknown> {
  const results = atoms.filter(({ state, result }) => state === 'SUCCESS' && result !== undefined)
  return Object.fromEntries(results.map(({ name, result }) => [name, result]))
}
