/** One board for this library and for TaskFlow itself, as Debian ships it: a Python process beside us, on one ZooKeeper. */
import { afterEach, describe, expect, test } from 'vitest'
import type { JobBoard, OpenBoardOptions } from '../../../../../src/board/index.ts'
import {
  ClaimLost,
  IncompatibleVersion,
  InvalidArgument,
  NotFound,
  Unclaimable,
  UnsupportedCapability,
} from '../../../../../src/core/errors.ts'
import { input, linear, startConductor, task } from '../../../../../src/index.ts'
import { BadVersion, op } from '../../../../../src/zookeeper/index.ts'
import { count } from '../../../../support/counts.ts'
import { expireSession } from '../../../../support/expire-session.ts'
import { namespace, zookeeperHosts } from '../../../../support/namespace.ts'
import { startProxy } from '../../../../support/proxy.ts'
import { startTaskFlow, type TaskFlowService, taskflowLeftOut } from '../../../../support/taskflow.ts'
import { portOf } from '../../../../zookeeper/clients.ts'
import { jobIdFor, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'
import { nextEvent, nextSession, recordEvents, rejectionOf, whenLost } from '../../../events.ts'
import { all, claimed, namesOn } from '../../../jobs.ts'
import { OwnershipLog, Worker } from '../../../ownership-log.ts'

/** Whoever comes second finds the board of the first. */
const ORDERS = ['TaskFlow', 'we'] as const

/** One place, services of TaskFlow and boards of ours; all closed when the test ends. */
class Setup {
  readonly place: ZooKeeperPlace
  readonly log: OwnershipLog = new OwnershipLog()
  readonly #opened: AsyncDisposable[] = []

  constructor(place: ZooKeeperPlace) {
    this.place = place
  }

  async service(who = 'theirs'): Promise<TaskFlowService> {
    const service = await startTaskFlow({ hosts: zookeeperHosts, path: this.place.path, who })
    this.#opened.push(service)
    return service
  }

  async board(options: OpenBoardOptions & { parameters?: string; hosts?: string } = {}): Promise<JobBoard> {
    const { hosts = zookeeperHosts, ...rest } = options
    const board = await this.place.openAt(hosts, { who: 'ours', ...rest })
    this.#opened.push(board)
    return board
  }

  /** One of each, opened in that order. */
  async both(first: (typeof ORDERS)[number]): Promise<{ service: TaskFlowService; board: JobBoard }> {
    if (first === 'TaskFlow') return { service: await this.service(), board: await this.board() }
    const board = await this.board({ parameters: '?encoding=json' })
    return { board, service: await this.service() }
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((each) => each[Symbol.asyncDispose]()))
    await this.place[Symbol.asyncDispose]()
    this.log[Symbol.dispose]()
  }

  /** What is written there. */
  async text(name: string): Promise<string> {
    const { data } = await this.place.observer.getData(`${this.place.path}${name}`)
    return Buffer.from(data ?? []).toString()
  }
}

const setups: Setup[] = []

async function setup(): Promise<Setup> {
  const made = new Setup(await zookeeperPlace(zookeeperHosts, { path: `${namespace('taskflow')}/jobs` }))
  setups.push(made)
  return made
}

afterEach(async () => {
  await Promise.all(setups.splice(0).map((each) => each.close()))
})

/** Resolves when there is no job on the board. */
async function emptied(board: JobBoard): Promise<void> {
  if ((board.jobCount ?? 0) > 0) await nextEvent(board, 'consumed', () => board.jobCount === 0)
}

// The first start of Python compiles TaskFlow: on a busy machine that takes a minute.
describe.skipIf(!zookeeperHosts || taskflowLeftOut)('a board shared with TaskFlow', { timeout: 240_000 }, () => {
  describe.each(ORDERS)('where %s came first', (first) => {
    test('what TaskFlow posts is listed, claimed and consumed here, and TaskFlow sees it', async () => {
      const { service, board } = await (await setup()).both(first)
      expect(board.shared).toBe(true)
      const posted = nextEvent(board, 'posted')
      const uuid = await service.post('theirs', { details: { store: { n: 1 }, other: ['a'] }, priority: 'HIGH' })
      expect((await posted).job.uuid).toBe(uuid)
      const job = await board.find(uuid)
      expect(job).toMatchObject({ name: 'theirs', priority: 'HIGH', state: 'UNCLAIMED', runs: 0 })
      expect(job.details).toEqual({ store: { n: 1 }, other: ['a'] })

      const [claim] = await board.claimNext()
      expect(claim).toMatchObject({ run: 1, job: { uuid } })
      expect(await service.jobs()).toMatchObject([{ uuid, state: 'CLAIMED', owner: 'ours', priority: 'HIGH' }])
      await expect(service.claim(uuid)).rejects.toMatchObject({ kind: 'UnclaimableJob' })
      await expect(service.consume(uuid)).rejects.toMatchObject({ kind: 'JobFailure' })
      await claim.consume()
      expect(await service.jobs()).toEqual([])
    })

    test('what we post is listed, claimed, abandoned, trashed and consumed by TaskFlow, and we see it', async () => {
      const { service, board } = await (await setup()).both(first)
      const history = recordEvents(board)
      const job = await board.post('flow', { n: 1 }, { name: 'ours', priority: 'LOW', details: { other: null } })
      const [seen] = await service.jobs()
      expect(seen).toEqual({
        ...{ uuid: job.uuid, name: 'ours', state: 'UNCLAIMED', priority: 'LOW', book: null, owner: null },
        details: { flow: 'flow', store: { n: 1 }, other: null },
      })

      const taken = nextEvent(board, 'claimed')
      await service.claim(job.uuid)
      await taken
      expect(job.state).toBe('CLAIMED')
      expect(await board.findOwner(job)).toBe('theirs')
      const refusal = await rejectionOf(board.claim(job))
      expect(refusal).toBeInstanceOf(Unclaimable)
      expect(String(refusal)).toContain('theirs')

      const back = nextEvent(board, 'abandoned')
      await service.abandon(job.uuid)
      await back
      const claim = await board.claim(job)
      expect(claim.run).toBe(1)
      await claim.abandon()

      await service.claim(job.uuid)
      await service.consume(job.uuid)
      expect(await job.wait()).toBe('COMPLETE')
      const trash = await board.post('flow', {}, { name: 'trash' })
      await service.claim((await service.jobs())[0]?.uuid ?? '')
      await service.trash(trash.uuid)
      // In TaskFlow's trash, which tells us nothing: gone is all we know.
      expect(await trash.wait()).toBe('COMPLETE')
      expect(await all(board.trashed())).toEqual([])
      const life = ['posted', 'claimed', 'abandoned', 'claimed', 'abandoned', 'claimed', 'consumed']
      const end = ['posted', 'claimed', 'consumed']
      expect(history).toEqual([...life.map((kind) => `${kind} ours`), ...end.map((kind) => `${kind} trash`)])
    })

    test('both at work at once never own one job at once, sessions that end in between included', async () => {
      const at = await setup()
      const { service, board } = await at.both(first)
      const { log } = at
      const [other, poster] = await Promise.all([at.board({ who: 'ours-too' }), at.service('poster')])
      const jobs = count({ test: 40, long: 400 })
      const rounds = count({ test: 3, long: 12 })
      const uuids: string[] = []
      const post = async () => {
        for (let number = 0; number < jobs / 4; number++) {
          const posted = await Promise.all([board.post('flow', { number }), poster.post('theirs')])
          uuids.push(posted[0].uuid, posted[1])
        }
      }
      let workers: Worker[] = []
      for (let round = 0; round < rounds; round++) {
        await post()
        if (round === 0) {
          const begun = nextEvent(board, 'claimed')
          await service.work(log.file)
          await begun
          workers = [new Worker(board, log), new Worker(other, log)]
        } else if (round % 2 === 1) {
          const reborn = nextSession(board)
          workers[0]?.expiring()
          await at.place.expire(board)
          await reborn
        } else {
          const session = await service.session()
          if (session !== undefined) {
            log.write('expiring', '-', 'theirs', String(session))
            await expireSession(zookeeperHosts, session)
          }
        }
        await post()
        await namesOn(board)
        await emptied(board)
      }
      await Promise.all([service.rest(), ...workers.map((worker) => worker.rest())])
      const { wrong, ended, doneBy } = log.judge()
      expect(wrong).toEqual([])
      expect([...ended].sort()).toEqual(uuids.sort())
      for (const who of ['theirs', 'ours', 'ours-too']) expect(doneBy.get(who), who).toBeGreaterThan(0)
    })
  })

  describe('owners that come too late', () => {
    test('we, after our session ended and TaskFlow has claimed the job', async () => {
      const at = await setup()
      const { service, board } = await at.both('TaskFlow')
      const job = await board.post('flow', {})
      const claim = await board.claim(job)
      const [lost, reborn] = [whenLost(claim), nextSession(board)]
      await at.place.expire(board)
      await service.jobs()
      await service.claim(job.uuid)
      expect(await lost).toBeInstanceOf(ClaimLost)
      await reborn
      expect(await rejectionOf(claim.consume())).toBeInstanceOf(ClaimLost)
      await expect(service.consume(job.uuid)).resolves.toBeNull()
      expect(await job.wait()).toBe('COMPLETE')
    })

    test('we, in the same session, when our lock was taken away and its removal was not reported yet', async () => {
      const at = await setup()
      const service = await at.service()
      const proxy = await startProxy({ port: portOf(zookeeperHosts) })
      const board = await at.board({ hosts: proxy.hosts, parameters: '?sessionTimeout=30s' })
      const job = await board.post('flow', {})
      const claim = await board.claim(job)
      proxy.mode = 'swallow-replies'
      await at.place.observer.delete(`${at.place.path}/${jobIdFor(job)}.lock`)
      await service.jobs()
      await service.claim(job.uuid)
      const sent = proxy.nextRequest()
      const settling = rejectionOf(claim.consume())
      await sent
      proxy.mode = 'pass'
      proxy.resetAll()
      expect(await settling).toBeInstanceOf(ClaimLost)
      expect(await service.jobs()).toMatchObject([{ uuid: job.uuid, state: 'CLAIMED', owner: 'theirs' }])
      await service.consume(job.uuid)
      await board.close()
      await proxy.close()
    })

    test('TaskFlow, after its session ended and we have claimed the job', async () => {
      const at = await setup()
      const { service, board } = await at.both('we')
      const uuid = await service.post('theirs')
      await service.claim(uuid)
      const session = await service.session()
      const back = nextEvent(board, 'abandoned')
      await expireSession(zookeeperHosts, session ?? 0n)
      await back
      const claim = await board.claim(await board.find(uuid))
      for (const settle of ['consume', 'abandon', 'trash'] as const) {
        await expect(service[settle](uuid), settle).rejects.toMatchObject({ kind: 'JobFailure' })
      }
      expect(claim.lost.aborted).toBe(false)
      await claim.consume()
    })

    test('TaskFlow, which looked at its lock before it lost it: its abandon cannot take ours away', async () => {
      const at = await setup()
      const { board } = await at.both('TaskFlow')
      const { observer, path } = at.place
      const claim = await board.claim(await board.post('flow', {}))
      const lock = `${path}/${jobIdFor(claim.job)}.lock`
      // What TaskFlow sends when it abandons: its locks are never changed, so they are of revision 0.
      await expect(observer.multi([op.delete(lock, { version: 0 })])).rejects.toBeInstanceOf(BadVersion)
      await claim.consume()
    })
  })

  describe('a posting of TaskFlow', () => {
    test('comes back from us as it was written, but for our own fields', async () => {
      const at = await setup()
      const { service, board } = await at.both('TaskFlow')
      const details = '{"id": 12345678901234567890, "ratio": 2.0, "small": 1e-07, "text": "ü\\u2028", "none": null}'
      const uuid = '0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab'
      const raw = `{"uuid": "${uuid}", "name": "raw", "priority": "low", "details": ${details}, "theirs": [1.0, {"x": 10}]}`
      const posted = nextEvent(board, 'posted')
      const id = await at.place.putRaw(Buffer.from(raw))
      const { job } = await posted
      expect(job).toMatchObject({ uuid, name: 'raw', priority: 'LOW' })
      expect(job.details).toMatchObject({ ratio: 2, text: 'ü\u2028', none: null })

      const claim = await board.claim(job)
      await claim.abandon({ reason: 'not mine', delay: '1h' })
      const written = await at.text(`/${id}`)
      expect(written).toContain(`"details":${details}`)
      expect(written).toContain('"theirs":[1.0, {"x": 10}]')
      const { attempts, runs, delay, maxAttempts } = JSON.parse(written)
      expect({ runs, delay, maxAttempts }).toEqual({ runs: 1, delay: 3_600_000, maxAttempts: 3 })
      expect(attempts).toMatchObject([{ who: 'ours', ended: 'returned', reason: 'not mine' }])

      // A service that has never seen it before: TaskFlow reads a posting once.
      const other = await at.service('other')
      expect(await other.jobs()).toMatchObject([{ uuid, state: 'UNCLAIMED', priority: 'LOW' }])
      expect(await other.details(uuid)).toBe(
        "{'id': 12345678901234567890, 'ratio': 2.0, 'small': 1e-07, 'text': 'ü\\u2028', 'none': None}",
      )
      // It knows nothing of our rests.
      await other.claim(uuid)
      await other.trash(uuid)
      expect(await job.wait()).toBe('COMPLETE')
      expect(await service.jobs()).toEqual([])
    })

    test('that names one of our flows is run by our conductors; one that does not is left to TaskFlow', async () => {
      const { service, board } = await (await setup()).both('TaskFlow')
      const said: string[] = []
      const say = task('say', { requires: ['text'], execute: async ({ text }: { text: string }) => said.push(text) })
      const flow = linear('say', input<{ text: string }>(), say)
      const theirs = await service.post('theirs', { details: { flow_uuid: '1', store: { text: 'theirs' } } })
      await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
      const uuid = await service.post('job', { details: { flow: 'say', store: { text: 'hello' } } })
      const ours = await board.find(uuid)
      expect(await ours.wait()).toBe('COMPLETE')
      expect(said).toEqual(['hello'])
      expect(await service.jobs()).toMatchObject([{ uuid: theirs, state: 'UNCLAIMED' }])
      expect((await board.find(theirs)).attempts).toEqual([])
      // Whoever asks for it gets it.
      const [claim] = await board.claimNext()
      expect(claim.job.uuid).toBe(theirs)
      await service.post('another')
      await claim.consume()
    })

    test('that makes no sense here is left alone, and said once', async () => {
      const at = await setup()
      const { service, board } = await at.both('TaskFlow')
      const uuid = '0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab'
      const failed = nextEvent(board, 'error')
      await at.place.putRaw(Buffer.from(`{"uuid": "${uuid}", "name": "x", "details": {"n": NaN}}`))
      expect(String((await failed).error)).toMatch(/not a json record/)
      expect(await namesOn(board)).toEqual([])
      expect(await service.state(uuid)).toBe('UNCLAIMED')
    })
  })

  test('conductors of both sides run each its own flows', async () => {
    const { service, board } = await (await setup()).both('we')
    const said: string[] = []
    const say = task('say', { requires: ['text'], execute: async ({ text }: { text: string }) => said.push(text) })
    const flow = linear('say', input<{ text: string }>(), say)
    const texts = Array.from({ length: count({ test: 5, long: 200 }) }, (_, number) => `text ${number}`)
    const jobs = []
    for (const text of texts) {
      jobs.push(await board.post(flow, { text }))
      jobs.push(await board.find(await service.postFlow(text)))
    }
    await service.conduct()
    await using _conductor = await startConductor({ board, persistence: 'memory:', flows: [flow] })
    for (const job of jobs) expect(await job.wait()).toBe('COMPLETE')
    expect(said.sort()).toEqual(texts.toSorted())
    expect((await service.executed()).sort()).toEqual(texts.toSorted())
  })

  describe('what is ours alone', () => {
    test('keys, resources and delays are refused when a job is posted, and so is what JSON does not hold', async () => {
      const { board } = await (await setup()).both('TaskFlow')
      for (const asked of [{ key: 'k' }, { resources: { shared: ['r'] } }, { delay: 1 }]) {
        expect(await rejectionOf(board.post('flow', {}, asked))).toBeInstanceOf(UnsupportedCapability)
      }
      const wrong = { at: new Date(0), bytes: Uint8Array.of(1), big: 1n, huge: Number.POSITIVE_INFINITY }
      for (const [name, value] of Object.entries(wrong)) {
        const failure = await rejectionOf(board.post('flow', { deep: [{ [name]: value }] }))
        expect(failure, name).toBeInstanceOf(InvalidArgument)
        expect(String(failure)).toContain(`details.store.deep.0.${name} is`)
      }
      expect(await board.countJobs()).toBe(0)
    })

    test('the trash: what we trash is under the path, whole, and comes back to TaskFlow when it is restored', async () => {
      const at = await setup()
      const { service, board } = await at.both('TaskFlow')
      await at.place.putRaw(
        Buffer.from('{"uuid": "0a1b2c3d-4e5f-4a6b-8c7d-0123456789ab", "name": "raw", "details": {"ratio": 2.0}}'),
      )
      const claim = await claimed(board, 'raw')
      await claim.trash({ reason: 'broken' })
      expect(await claim.job.wait()).toBe('TRASHED')
      expect(await service.jobs()).toEqual([])
      const [trashed] = await all(board.trashed())
      expect(trashed).toMatchObject({ name: 'raw', who: 'ours', reason: 'broken', details: { ratio: 2 } })
      expect(trashed?.at).toBeInstanceOf(Date)
      if (!trashed) throw new Error('nothing was trashed')
      await board.restore(trashed)
      expect(await service.jobs()).toMatchObject([{ uuid: trashed.uuid, state: 'UNCLAIMED' }])
      expect(await service.details(trashed.uuid)).toBe("{'ratio': 2.0}")
    })

    test('the gate and cancel requests: those of us keep to them, TaskFlow knows of neither', async () => {
      const { service, board } = await (await setup()).both('TaskFlow')
      const uuid = await service.post('theirs')
      const job = await board.find(uuid)
      await board.pause()
      expect(await rejectionOf(board.claim(job))).toBeInstanceOf(Unclaimable)
      await service.claim(uuid)
      const asked = board.cancel(job, { reason: 'enough' })
      await asked
      await service.abandon(uuid)
      await board.resume()
      // It has to be undone, by whoever is asked: it may have been run before.
      const [claim] = await board.claimNext()
      expect(claim.cancelled.aborted).toBe(true)
      await claim.trash()
      expect(await job.wait()).toBe('TRASHED')
      // One that nobody runs, and nobody of us has run, is trashed at once.
      const unrun = await board.find(await service.post('unrun'))
      await board.cancel(unrun)
      expect(await unrun.wait()).toBe('TRASHED')
      expect(await service.jobs()).toEqual([])
    })

    test('participants: each side shows its own', async () => {
      const { service, board } = await (await setup()).both('TaskFlow')
      await using _entity = await board.registerEntity({ kind: 'conductor', name: 'ours', metadata: { flows: ['x'] } })
      expect(await board.entities('conductor')).toMatchObject([{ name: 'ours', metadata: { flows: ['x'] } }])
      expect(await service.jobs()).toEqual([])
    })
  })

  describe('the path', () => {
    const FOLDERS = ['.cancel', '.entities', '.gate', '.keys', '.permits', '.trash']

    test('that TaskFlow made becomes a board for good, whole, whichever process opens it first or at the same time', async () => {
      const at = await setup()
      await at.service()
      const boards = await Promise.all(Array.from({ length: 4 }, () => at.board()))
      expect(boards.map(({ shared }) => shared)).toEqual([true, true, true, true])
      const { observer, path } = at.place
      expect((await observer.getChildren(path)).names.sort()).toEqual(FOLDERS)
      expect(JSON.parse(await at.text(''))).toEqual({ format: 1, encoding: 'json', shared: true })
    })

    test('is made whole by the next one when the first died in the middle', async () => {
      const at = await setup()
      const service = await at.service()
      const { observer, path } = at.place
      for (const folder of ['.trash', '.gate']) await observer.create(`${path}/${folder}`, null)
      const board = await at.board()
      expect((await observer.getChildren(path)).names.sort()).toEqual(FOLDERS)
      expect(board.paused).toBe(false)
      await (await board.claim(await board.find(await service.post('theirs')))).consume()
    })

    test('is left as it is by those who only look, until there is a job', async () => {
      const at = await setup()
      const service = await at.service()
      expect(await rejectionOf(at.board({ create: false }))).toBeInstanceOf(NotFound)
      expect((await at.place.observer.getChildren(at.place.path)).names).toEqual([])
      const uuid = await service.post('theirs')
      expect((await (await at.board({ create: false })).find(uuid)).name).toBe('theirs')
    })

    test('that holds what is not of a board is no board', async () => {
      const at = await setup()
      const { observer, path } = at.place
      await observer.mkdirp(`${path}/jobs`)
      const failure = await rejectionOf(at.board())
      expect(failure).toBeInstanceOf(IncompatibleVersion)
      expect(String(failure)).toMatch(/holds jobs/)
      expect(await rejectionOf(at.board({ parameters: '?encoding=json' }))).toBeInstanceOf(IncompatibleVersion)
    })

    test('is not opened in another encoding than it has', async () => {
      const shared = await setup()
      await shared.service()
      expect(await rejectionOf(shared.board({ parameters: '?encoding=msgpack' }))).toBeInstanceOf(IncompatibleVersion)
      await shared.board()
      const failure = await rejectionOf(shared.board({ parameters: '?encoding=msgpack' }))
      expect(failure).toBeInstanceOf(IncompatibleVersion)
      expect(String(failure)).toMatch(/is shared with TaskFlow: its encoding is json/)
      const ours = await setup()
      expect((await ours.board({ parameters: '?encoding=msgpack' })).shared).toBe(false)
      expect(await rejectionOf(ours.board({ parameters: '?encoding=json' }))).toBeInstanceOf(IncompatibleVersion)
      expect(await rejectionOf(ours.board({ parameters: '?encoding=xml' }))).toBeInstanceOf(InvalidArgument)
    })
  })
})
