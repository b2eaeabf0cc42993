/** The routes that change something. Each needs a right, and is logged with the name of the person. */
import type { z } from 'zod'
import type { Job, TrashedJob } from '../../board/index.ts'
import { isKnownToAny } from '../../board/internal.ts'
import { InvalidArgument, MissingDependencies, NotFound } from '../../core/errors.ts'
import { defined } from '../../core/options.ts'
import { shortenText } from '../../core/texts.ts'
import type { ViewedBoard } from '../boards/viewed-board.ts'
import {
  batchActionBody,
  bulkBody,
  bulkResult,
  done,
  JOB_ACTIONS,
  type JobAction,
  jobActionBody,
  limitActionBody,
  postBody,
  queueActionBody,
  scheduleActionBody,
} from '../wire/actions.ts'
import { type Change, carryOut } from './audit.ts'
import { boardOf, uuidOf } from './board-of.ts'
import { runBulk } from './bulk.ts'
import { defineRoute, type Route } from './route.ts'

const SUMMARIES: Readonly<Record<JobAction, string>> = {
  cancel: 'Cancel a job',
  restore: 'Restore a job from the trash',
  purge: 'Delete a job from the trash',
  release: 'Take the claim of a job away from its owner',
}

export const ACTIONS: readonly Route[] = [
  defineRoute({
    ...{
      method: 'POST',
      path: '/boards/:board/jobs',
      summary: 'Post a job by the name of its flow',
      body: postBody,
      answer: done,
    },
    handle: async (call) => {
      const viewed = boardOf(call)
      const { flow, store = {}, priority, key } = call.body
      const change: Change = { action: 'post', what: `flow ${flow}` }
      return carryOut(call, viewed, change, async () => {
        await assertInputs(viewed, flow, store)
        // A priority that is none is refused by the board.
        const options = defined({ priority: priority as 'NORMAL' | undefined, key })
        const job = await viewed.board.post(flow, store, options)
        const text = job.created ? await describePost(viewed, flow) : 'a job with this key is open: nothing was posted'
        return { ok: true, uuids: [job.uuid], text }
      })
    },
  }),
  ...JOB_ACTIONS.map((action) =>
    defineRoute({
      ...{
        method: 'POST',
        path: `/boards/:board/jobs/:uuid/${action}`,
        summary: SUMMARIES[action],
        body: jobActionBody,
      },
      answer: done,
      handle: async (call) => {
        const [viewed, uuid] = [boardOf(call), uuidOf(call)]
        const change: Change = { action, what: `job ${uuid}`, reason: call.body.reason }
        return carryOut(call, viewed, change, async (reason) => ({
          ok: true,
          uuids: await actOnJob(action, uuid, { viewed, reason, by: call.access.who }),
        }))
      },
    }),
  ),
  defineRoute({
    ...{ method: 'POST', path: '/boards/:board/bulk', summary: 'Cancel, restore or purge many jobs', body: bulkBody },
    answer: bulkResult,
    handle: async (call) => runBulk(call, boardOf(call)),
  }),
  ...(['pause', 'resume'] as const).map((action) =>
    defineRoute({
      ...{
        method: 'POST',
        path: `/boards/:board/${action}`,
        summary: `${action} the whole board`,
        body: jobActionBody,
      },
      answer: done,
      handle: async (call) => {
        const viewed = boardOf(call)
        const change: Change = { action: `board.${action}`, what: 'the board', reason: call.body.reason }
        return carryOut(call, viewed, change, async () => {
          const { board } = viewed
          if (action === 'resume') await board.resume()
          else await board.pause({ by: call.access.who, ...defined({ reason: call.body.reason?.trim() || undefined }) })
          return { ok: true }
        })
      },
    }),
  ),
  defineRoute({
    ...{ method: 'POST', path: '/boards/:board/queues', summary: 'Pause or resume a queue' },
    ...{ body: queueActionBody, answer: done },
    handle: async (call) => {
      const viewed = boardOf(call)
      const { queue, action } = call.body
      const change: Change = { action: `queue.${action}`, what: `queue ${queue}`, reason: call.body.reason }
      return carryOut(call, viewed, change, async () => {
        const reason = call.body.reason?.trim() || undefined
        if (action === 'pause') await viewed.board.pause({ queue, reason, by: call.access.who })
        else await viewed.board.resume({ queue })
        return { ok: true }
      })
    },
  }),
  defineRoute({
    ...{ method: 'POST', path: '/boards/:board/schedules', summary: 'Pause, resume, trigger or remove a schedule' },
    ...{ body: scheduleActionBody, answer: done },
    handle: async (call) => {
      const viewed = boardOf(call)
      const { schedules } = viewed.board
      const { id, action } = call.body
      const change: Change = { action: `schedule.${action}`, what: `schedule ${id}`, reason: call.body.reason }
      return carryOut(call, viewed, change, async (reason) => {
        if (action === 'trigger') return { ok: true, uuids: [await schedules.trigger(id)] }
        if (action === 'pause') await schedules.pause(id, { reason, by: call.access.who })
        else if (action === 'resume') await schedules.resume(id)
        else await schedules.remove(id)
        return { ok: true }
      })
    },
  }),
  defineRoute({
    ...{ method: 'POST', path: '/boards/:board/limits', summary: 'Set, remove, stop, hold or resume a limit' },
    ...{ body: limitActionBody, answer: done },
    handle: async (call) => {
      const viewed = boardOf(call)
      const { action, key } = call.body
      const given = 'reason' in call.body ? call.body.reason : undefined
      const change: Change = { action: `limit.${action}`, what: `limit ${key}`, reason: given }
      return carryOut(call, viewed, change, async (reason) => {
        await actOnLimit(viewed, call.body, { reason, by: call.access.who })
        return { ok: true }
      })
    },
  }),
  defineRoute({
    ...{
      method: 'POST',
      path: '/boards/:board/batches/:uuid',
      summary: 'Cancel a batch, or run its failed jobs again',
    },
    ...{ body: batchActionBody, answer: done },
    handle: async (call) => {
      const [viewed, uuid] = [boardOf(call), uuidOf(call)]
      const { action } = call.body
      const change: Change = { action: `batch.${action}`, what: `batch ${uuid}`, reason: call.body.reason }
      return carryOut(call, viewed, change, async (reason) => {
        const batch = await viewed.board.findBatch(uuid)
        if (action === 'retry') return { ok: true, uuids: (await batch.retryFailed()).map((job) => job.uuid) }
        await batch.cancel({ reason })
        return { ok: true }
      })
    },
  }),
]

/** The most missing inputs that a message names. */
const MAX_NAMED = 10

/** Refuses a store without inputs that every known version of the flow requires. @throws MissingDependencies */
async function assertInputs({ board }: ViewedBoard, flow: string, store: object): Promise<void> {
  const known = (await board.flows()).filter(({ name }) => name === flow)
  const [first = [], ...others] = known.map(({ requires }) => new Set(requires))
  const missing = [...first].filter(
    (input) => !Object.hasOwn(store, input) && others.every((requires) => requires.has(input)),
  )
  if (missing.length === 0) return
  const named = missing.slice(0, MAX_NAMED).map(shortenText).join(', ')
  const more = missing.length > MAX_NAMED ? ` and ${missing.length - MAX_NAMED} more` : ''
  throw new MissingDependencies(`flow ${flow} requires ${named}${more}: add it to the store`)
}

/** Returns the message after a post. A mistyped name of a flow should be noticed at once. */
async function describePost(viewed: ViewedBoard, flow: string): Promise<string> {
  const conductors = await viewed.conductors()
  if (conductors.length === 0) return 'the job is posted, but no conductor is connected'
  return isKnownToAny({ flow, version: undefined }, conductors)
    ? 'the job is posted'
    : `the job is posted, but no conductor has flow ${flow}: it waits for one`
}

interface JobActionOptions {
  readonly viewed: ViewedBoard
  readonly reason: string
  readonly by: string
}

/** Carries out an action on one job. Returns the uuids of the jobs that it has changed. */
async function actOnJob(action: JobAction, uuid: string, { viewed, reason, by }: JobActionOptions): Promise<string[]> {
  const { board } = viewed
  if (action === 'cancel' || action === 'release') {
    const job: Job = await board.find(uuid).catch(async (error: unknown) => {
      if (error instanceof NotFound && (await board.findTrashed(uuid)))
        throw new NotFound(`job ${uuid} is in the trash already`)
      throw error
    })
    await (action === 'cancel' ? board.cancel(job, { reason, by }) : board.release(job, { reason, by }))
    return [uuid]
  }
  const trashed: TrashedJob | undefined = await board.findTrashed(uuid)
  if (!trashed) throw new NotFound(`job ${uuid} is not in the trash`)
  if (action === 'restore') return (await board.restore(trashed)).map((job) => job.uuid)
  await board.purge(trashed)
  return [uuid]
}

/** Changes a limit. @throws InvalidArgument, UnsupportedCapability, NotFound */
async function actOnLimit(
  { board }: ViewedBoard,
  body: z.infer<typeof limitActionBody>,
  { reason, by }: { readonly reason: string; readonly by: string },
): Promise<void> {
  const { limits } = board
  switch (body.action) {
    case 'set': {
      const { key, concurrency, rate, fair } = body
      if (concurrency === undefined && rate === undefined)
        throw new InvalidArgument(`limit ${key}: set a concurrency or a rate`)
      const perRate = rate && { limit: rate.limit, per: rate.perMs, ...defined({ burst: rate.burst }) }
      await limits.set(key, defined({ concurrency, rate: perRate, fair }), { by })
      break
    }
    case 'remove':
      await limits.remove(body.key)
      break
    case 'stop':
      await limits.stop(body.key, { reason, by })
      break
    case 'pushBack':
      await limits.pushBack(body.key, { for: body.forMs, reason, by })
      break
    case 'resume':
      await limits.resume(body.key)
      break
  }
}
