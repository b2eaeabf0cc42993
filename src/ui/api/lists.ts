/** The routes of the session, of the doctor, of the stream of changes, and of the lists other than jobs. */
import { z } from 'zod'
import { boardInternals } from '../../board/internal.ts'
import { NotFound } from '../../core/errors.ts'
import { packageVersion } from '../../core/package-version.ts'
import { levelOn } from '../access/access.ts'
import { toClientKey } from '../access/address.ts'
import { toLogbookRow } from '../boards/job-detail.ts'
import {
  logbooksOf,
  readBatch,
  readBatches,
  readConductors,
  readFlows,
  readLimits,
  readLogbooks,
  readQueues,
  readResources,
  readSchedules,
} from '../boards/lists.ts'
import { Refusal } from '../problem.ts'
import {
  batchList,
  batchRow,
  conductorList,
  findings,
  flowList,
  limitList,
  logbookPage,
  queueList,
  resourceList,
  scheduleList,
} from '../wire/board.ts'
import { logbook } from '../wire/jobs.ts'
import { session } from '../wire/session.ts'
import { boardOf, uuidOf } from './board-of.ts'
import { afterQuery, defineRoute, FIRST_LOOK_MS, limitQuery, type Route, waitOf } from './route.ts'

const pageQuery = z.object({ after: afterQuery, limit: limitQuery({ most: 200, by: 50 }) })
const suggestQuery = z.object({ q: z.string().max(200).default('') })
const suggestions = z.object({ suggestions: z.array(z.object({ text: z.string(), kind: z.string() })) })
const MAX_SUGGESTIONS = 20

export const LISTS: readonly Route[] = [
  defineRoute({
    ...{ method: 'GET', path: '/session', summary: 'Who asks, and which boards there are', answer: session },
    handle: async ({ services, access }) => ({
      ...{ who: access.who, level: access.level, values: access.values },
      readOnly: services.settings.readOnly,
      version: packageVersion(),
      now: new Date(),
      boards: await Promise.all(
        [...services.boards.values()].flatMap((each) => {
          const level = levelOn(access, each.name)
          return level ? [each.summary().then((summary) => ({ ...summary, level }))] : []
        }),
      ),
      doctor: services.settings.examine !== undefined,
    }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/flows', summary: 'The flows that conductors have, or have had' },
    answer: flowList,
    handle: async (call) => ({ flows: await readFlows(boardOf(call), { waitMs: waitOf(call) }) }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/queues', summary: 'The queues that have jobs or are paused' },
    answer: queueList,
    handle: async (call) => readQueues(boardOf(call), { waitMs: waitOf(call) }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/schedules', summary: 'The schedules', answer: scheduleList },
    handle: async (call) => ({ schedules: await readSchedules(boardOf(call)) }),
  }),
  defineRoute({
    ...{
      method: 'GET',
      path: '/boards/:board/limits',
      summary: 'The limits, and what is taken of them',
      answer: limitList,
    },
    handle: async (call) => ({ limits: await readLimits(boardOf(call)) }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/resources', summary: 'The resources that jobs hold and wait for' },
    answer: resourceList,
    handle: async (call) => readResources(boardOf(call), { waitMs: waitOf(call) }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/batches', summary: 'The newest batches', answer: batchList },
    handle: async (call) => ({ batches: await readBatches(boardOf(call)) }),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/batches/:uuid', summary: 'One batch', answer: batchRow },
    handle: async (call) => readBatch(boardOf(call), uuidOf(call)),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/conductors', summary: 'The conductors that are connected' },
    answer: conductorList,
    handle: async (call) => ({ conductors: await readConductors(boardOf(call)) }),
  }),
  defineRoute({
    ...{
      method: 'GET',
      path: '/boards/:board/logbooks',
      summary: 'The logbooks',
      query: pageQuery,
      answer: logbookPage,
    },
    handle: async (call) => readLogbooks(boardOf(call), call.query),
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/logbooks/:uuid', summary: 'A logbook, with its flows' },
    answer: z.object({ uuid: z.string(), name: z.string(), flows: z.array(logbook) }),
    handle: async (call) => {
      const book = await logbooksOf(boardOf(call)).getBook(uuidOf(call))
      const flows = book.flows.map((flow) => toLogbookRow({ book, flow }, call.services.redaction))
      return { uuid: book.uuid, name: book.name, flows }
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/doctor', summary: 'What the doctor finds', answer: findings },
    handle: async (call) => {
      const { examine } = call.services.settings
      if (!examine) throw new NotFound('this dashboard has no doctor; jobboard doctor examines a board')
      const { name, board, cache } = boardOf(call)
      const read = async () => ({ findings: await examine({ name, board }), at: new Date() })
      return cache.get('doctor', { minAgeMs: 10_000, maxAgeMs: 10_000 }, read)
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/suggest', summary: 'Words that complete a search', query: suggestQuery },
    answer: suggestions,
    handle: async (call) => {
      const viewed = boardOf(call)
      await viewed.touch()
      const wanted = call.query.q.toLowerCase()
      const found = new Map<string, string>()
      const add = (kind: string, text: unknown) => {
        const shown = typeof text === 'string' ? call.services.redaction.text(text) : ''
        if (shown !== '' && shown.toLowerCase().includes(wanted)) found.set(`${kind}:${shown}`, kind)
        return found.size >= MAX_SUGGESTIONS
      }
      for (const conductor of await viewed.conductors()) {
        const { flows } = conductor.metadata
        for (const flow of Array.isArray(flows) ? flows : []) add('flow', Object(flow).name ?? flow)
      }
      const accept = ({
        posting,
      }: {
        readonly posting: { name: string; key?: string; details: Record<string, unknown> }
      }) => {
        add('name', posting.name)
        add('key', posting.key)
        return add('flow', posting.details['flow'])
      }
      await boardInternals(viewed.board).jobPage({ limit: 1, most: 5_000, timeMs: 100, accept, waitMs: FIRST_LOOK_MS })
      return { suggestions: [...found].slice(0, MAX_SUGGESTIONS).map(([text, kind]) => ({ text, kind })) }
    },
  }),
  defineRoute({
    ...{ method: 'GET', path: '/boards/:board/events', summary: 'The stream of changes: Server-Sent Events' },
    query: z.object({ jobs: z.string().max(20_000).default(''), since: z.string().max(100).optional() }),
    handle: async (call) => {
      const viewed = boardOf(call)
      const streams = call.services.streams.get(viewed.name)
      if (!streams) throw new Refusal('NOT_FOUND', 'this board has no stream')
      const jobs = new Set(call.query.jobs.split(',').filter((uuid) => uuid !== ''))
      if (jobs.size > 500) throw new Refusal('BAD_REQUEST', 'a stream names at most 500 jobs')
      const held: Disposable[] = [call.services.counter.add(toClientKey(call.client.address) ?? call.access.who)]
      try {
        await viewed.touch()
        held.push(await viewed.feed.hold())
        // A browser that reconnects by itself sends the newer position in the header.
        const lastEventId = call.request.headers.get('last-event-id') ?? call.query.since ?? null
        return streams.open({ jobs, lastEventId, signal: call.request.signal, held })
      } catch (error) {
        for (const each of held) each[Symbol.dispose]()
        throw error
      }
    },
  }),
]
