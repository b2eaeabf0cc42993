/** What the board is as znodes, and what it does with what others left there. */
import { describe, expect } from 'vitest'
import { openBoard } from '../../../../src/board/index.ts'
import { decode, encode } from '../../../../src/core/codec.ts'
import { IncompatibleVersion, InvalidArgument, NotConnected } from '../../../../src/core/errors.ts'
import { namespace, zookeeperHosts } from '../../../support/namespace.ts'
import { freePort } from '../../../support/ports.ts'
import { usual as test, variant } from '../../../variant.ts'
import { connected } from '../../../zookeeper/clients.ts'
import { zookeeperPlace } from '../../boards.ts'
import { nextEvent, rejectionOf, whenLost } from '../../events.ts'
import { all, claimed, namesOn, refresh } from '../../jobs.ts'
import { boardAt } from './bare-backends.ts'

describe.skipIf(!zookeeperHosts)('a board on ZooKeeper', () => {
  const FOLDERS = ['.cancel', '.entities', '.gate', '.keys', '.permits', '.trash']

  variant(
    'is opened although all its postings together, and its trash, are more than a client takes in one answer',
    async () => {
      await using place = await zookeeperPlace()
      await using poster = await place.open()
      const text = 'x'.repeat(100_000)
      for (let n = 0; n < 12; n += 1) {
        const job = await poster.post('flow', { text }, { name: `job ${n}` })
        if (n % 2 === 0) await (await poster.claim(job)).trash()
        else await place.putRaw(Buffer.alloc(100_000, 0xc1))
      }
      await using board = await boardAt(place, { maxReplyBytes: 350_000 })
      expect(await namesOn(board)).toHaveLength(6)
      await expect
        .poll(() =>
          all(board.trashed())
            .then((trash) => trash.length)
            .catch(() => 0),
        )
        .toBe(6)
    },
  )

  describe('as znodes', () => {
    test('is laid out under the names that TaskFlow gives them', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open({ who: 'owner' })
      const { path, observer } = place
      const job = await board.post('flow', { n: 1 }, { name: 'job' })
      const [id, ...others] = await place.jobNodes()
      expect(others).toEqual([])
      expect(id).toMatch(/^job\d{10}$/)
      const { data, stat } = await observer.getData(`${path}/${id}`)
      expect(stat.ephemeralOwner).toBe(0n)
      expect(decode(data ?? new Uint8Array(), 'msgpack')).toMatchObject({
        uuid: job.uuid,
        name: 'job',
        priority: 'NORMAL',
        details: { flow: 'flow', store: { n: 1 } },
      })
      expect(JSON.parse(String(Buffer.from((await observer.getData(path)).data ?? [])))).toEqual({
        format: 1,
        encoding: 'msgpack',
      })

      const claim = await board.claim(job)
      expect(await place.jobNodes()).toEqual([id, `${id}.lock`])
      const lock = await observer.getData(`${path}/${id}.lock`)
      expect(lock.stat.ephemeralOwner).not.toBe(0n)
      expect(decode(lock.data ?? new Uint8Array(), 'msgpack')).toEqual({ owner: 'owner' })
      expect(claim.fence).toBe(lock.stat.czxid + (await place.fenceBase()))

      await using _entity = await board.registerEntity({ kind: 'conductor', name: 'host:1', metadata: {} })
      expect((await observer.getChildren(`${path}/.entities/conductor`)).names).toEqual(['host%3A1'])
      await claim.trash()
      expect(await place.jobNodes()).toEqual([])
      expect(await place.trashNodes()).toEqual([id])
    })

    test.each(['consume', 'abandon', 'trash'] as const)('has neither lock nor orphan after %s', async (settle) => {
      await using place = await zookeeperPlace()
      const board = await place.open()
      for (let number = 0; number < 5; number++) await board.post('flow', {})
      const posted = await place.jobNodes()
      for (const claim of await board.claimNext({ max: 5 })) await claim[settle]()
      expect(await place.jobNodes()).toEqual(settle === 'abandon' ? posted : [])
      expect(await place.trashNodes()).toEqual(settle === 'trash' ? posted : [])
      const sessions = `${place.path.replace('/', '/.')}-sessions`
      const markers = (await place.observer.getChildren(sessions)).names.filter((name) => !name.startsWith('.'))
      expect(markers).toHaveLength(1)
      await board.close()
      const left = (await place.observer.getChildren(sessions)).names.filter((name) => !name.startsWith('.'))
      expect(left).toEqual([])
      expect((await place.observer.getChildren(place.path)).names.sort()).toEqual(
        settle === 'abandon' ? [...FOLDERS, ...posted] : FOLDERS,
      )
    })

    test('an idle board changes nothing, however many look at it', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.post('flow', {})
      await using _other = await place.open()
      const before = await place.observer.getChildren(place.path)
      await namesOn(board)
      const after = await place.observer.getChildren(place.path)
      expect(after.stat).toEqual(before.stat)
    })
  })

  describe('opening', () => {
    test('on a fresh path by many at once makes one board', async () => {
      for (let round = 0; round < 5; round++) {
        const uri = `zookeeper://${zookeeperHosts}${namespace('fresh')}/deep/board`
        const boards = await Promise.all(Array.from({ length: 6 }, () => openBoard(uri)))
        await Promise.all(boards.map((board) => board.post('flow', {})))
        for (const board of boards) {
          await refresh(board)
          expect(await board.countJobs()).toBe(6)
          await board.close()
        }
      }
    })

    test('makes a chroot that is missing, and keeps to it', async () => {
      const chroot = namespace('chroot')
      await using board = await openBoard(`zookeeper://${zookeeperHosts}/board?chroot=${chroot}`)
      await board.post('flow', {})
      await using observer = await connected()
      expect((await observer.getChildren(`${chroot}/board`)).names).toContain('.trash')
      await using other = await openBoard(`zookeeper://${zookeeperHosts}${chroot}/board/`)
      expect(await other.countJobs()).toBe(1)
    })

    test('refuses a path that is something else, in one line that says what to do', async () => {
      await using observer = await connected()
      const contents = [Buffer.from('hello'), Buffer.from('{"format":"x"}'), Buffer.from('[]'), Buffer.of(0xff)]
      for (const content of contents) {
        const path = namespace('other')
        await observer.create(path, content)
        const failure = await rejectionOf(openBoard(`zookeeper://${zookeeperHosts}${path}`))
        expect(failure).toBeInstanceOf(IncompatibleVersion)
        expect(String(failure)).toContain(path)
        expect(String(failure)).not.toContain('\n')
        expect(String(Buffer.from((await observer.getData(path)).data ?? []))).toBe(String(content))
        expect((await observer.getChildren(path)).names).toEqual([])
      }
    })

    test.each(['msgpack', 'cbor'])(
      'refuses a board of a newer format, whatever it is written in (%s)',
      async (encoding) => {
        await using observer = await connected()
        const path = namespace('newer')
        await observer.create(path, encode({ format: 2, encoding }, 'json'))
        const failure = await rejectionOf(openBoard(`zookeeper://${zookeeperHosts}${path}`))
        expect(failure).toBeInstanceOf(IncompatibleVersion)
        expect(String(failure)).toMatch(/format 2.*upgrade/)
      },
    )

    test('refuses a board that a former release has not created to its end', async () => {
      await using observer = await connected()
      const path = namespace('unfinished')
      await observer.create(path, encode({ format: 1, encoding: 'msgpack', unfinished: true }, 'json'))
      const failure = await rejectionOf(openBoard(`zookeeper://${zookeeperHosts}${path}`))
      expect(failure).toBeInstanceOf(IncompatibleVersion)
      expect(String(failure)).toContain('delete the path')
    })

    test("takes the servers' tick and the session's timeout", async () => {
      await using place = await zookeeperPlace()
      await using board = await place.openAt(zookeeperHosts, { parameters: '?tick=500ms&sessionTimeout=6s' })
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      await claim.consume()
    })

    test('refuses what no URI of a board is', async () => {
      for (const uri of [
        'zookeeper:',
        'zookeeper:///x',
        'zookeeper://h/x?tick=-2s',
        'zookeeper://h:1/x?sessionTimeout=soon',
      ]) {
        expect(await rejectionOf(openBoard(uri)), uri).toBeInstanceOf(InvalidArgument)
      }
      expect(await rejectionOf(openBoard(`zookeeper://${zookeeperHosts}/a//b`))).toBeInstanceOf(InvalidArgument)
    })

    test('an unreachable server ends as one line, in the time of a session', async () => {
      const uri = `zookeeper://127.0.0.1:${await freePort()}/board?sessionTimeout=1s`
      const failure = await rejectionOf(openBoard(uri))
      expect(failure).toBeInstanceOf(NotConnected)
      expect(String(failure)).toMatch(/^NotConnected: no ZooKeeper session at 127\.0\.0\.1:\d+ within 1000 ms: .*$/)
    })

    test('stops when its signal fires', async () => {
      const reason = new Error('enough')
      const stop = new AbortController()
      const opening = openBoard(`zookeeper://127.0.0.1:${await freePort()}/board`, { signal: stop.signal })
      stop.abort(reason)
      expect(await rejectionOf(opening)).toBe(reason)
    })
  })

  describe('among strangers', () => {
    test('leaves alone what is no job, and jobs of a newer format', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const errors: string[] = []
      board.on('error', ({ error }) => errors.push(error.message))
      for (const name of ['jobs', 'job1', 'note', 'job0000000001x'])
        await place.observer.create(`${place.path}/${name}`)
      const posting = { uuid: '00000000-0000-7000-8000-000000000000', name: 'later', details: {}, format: 99 }
      const reported = nextEvent(board, 'error')
      const id = await place.putRaw(encode(posting, 'msgpack'))
      await reported
      expect(await namesOn(board)).toEqual([])
      expect(errors).toEqual([expect.stringMatching(new RegExp(`${id}.*format 99.*upgrade`))])
    })

    test('a posting that is repaired becomes a job, one that is spoilt stops being claimable', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const noticed = nextEvent(board, 'error')
      const id = await place.putRaw(Buffer.from('garbage'))
      await noticed
      const posting = { uuid: '00000000-0000-7000-8000-000000000000', name: 'repaired', details: {} }
      const waiting = board.claimNext()
      await place.observer.setData(`${place.path}/${id}`, encode(posting, 'msgpack'))
      const [claim] = await waiting
      expect(claim.job).toMatchObject({ name: 'repaired', priority: 'NORMAL', maxAttempts: 3 })
      await claim.abandon()
      await refresh(board)
      const spoilt = nextEvent(board, 'error')
      await place.observer.setData(`${place.path}/${id}`, Buffer.from('garbage'))
      await spoilt
      expect(await namesOn(board)).toEqual([])
      expect(await rejectionOf(board.wait({ timeout: 1 }))).toMatchObject({ code: 'JOBBOARD_TIMEOUT' })
    })

    test('fields that are not known here stay with the posting', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const posting = { uuid: '00000000-0000-7000-8000-000000000000', name: 'job', details: {}, flavour: 'sour' }
      const id = await place.putRaw(encode(posting, 'msgpack'))
      await (await claimed(board, 'job')).abandon()
      const { data } = await place.observer.getData(`${place.path}/${id}`)
      expect(decode(data ?? new Uint8Array(), 'msgpack')).toMatchObject({ flavour: 'sour', runs: 1 })
    })

    test('a lock taken away by hand loses the claim, and the job goes to another', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await using other = await place.open()
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      const [id] = await place.jobNodes()
      const lost = whenLost(claim)
      const taken = other.claimNext()
      await place.observer.delete(`${place.path}/${id}.lock`)
      await lost
      expect((await Promise.race([taken, board.claimNext()]))[0].run).toBe(2)
    })

    describe.each(['lock', 'posting'] as const)('a %s taken away by hand', (what) => {
      test('loses the claim; neither lock nor permits stay with the session', async () => {
        await using place = await zookeeperPlace()
        await using board = await place.open()
        const resources = { exclusive: ['disk/1'], shared: ['account'] }
        const job = await board.post('flow', {}, { name: 'first', resources })
        await board.post('flow', {}, { name: 'second', resources: { exclusive: ['disk/1', 'account'] } })
        const [claim] = await board.claimNext()
        const [id] = await place.jobNodes()
        const lost = whenLost(claim)
        const following = board.claimNext()
        await place.observer.delete(`${place.path}/${id}${what === 'lock' ? '.lock' : ''}`)
        await lost
        const [taken] = await following
        expect(taken.job.name).toBe(what === 'lock' ? 'first' : 'second')
        await taken.consume()
        if (what === 'posting') {
          expect(job.state).toBe('COMPLETE')
          expect(await place.jobNodes()).toEqual([])
        }
      })
    })

    test('what is left of a claim taken away is freed, and nothing of the claims beside it', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.post('flow', {}, { resources: { shared: ['account'] } })
      await board.post('flow', {}, { resources: { shared: ['account'] } })
      const claims = await board.claimNext({ max: 2 })
      const [id] = await place.jobNodes()
      const lost = claims.map((claim) => claim.lost)
      const told = whenLost(claims[0])
      await place.observer.delete(`${place.path}/${id}`)
      await told
      await board.post('flow', {}, { name: 'alone', resources: { exclusive: ['account'] } })
      const alone = board.claimNext()
      expect(lost.map((signal) => signal.aborted)).toEqual([true, false])
      await claims[1]?.consume()
      await (await alone)[0].consume()
    })

    test('a lock put there by hand keeps everybody off, and names whom it can', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      const job = await board.post('flow', {})
      const [id] = await place.jobNodes()
      const lock = `${place.path}/${id}.lock`
      await place.observer.create(lock, encode({ owner: 'by hand' }, 'msgpack'))
      await refresh(board)
      expect(job.state).toBe('CLAIMED')
      expect(await board.findOwner(job)).toBe('by hand')
      expect(String(await rejectionOf(board.claim(job)))).toContain('by hand')
      expect(await rejectionOf(board.wait({ timeout: 1 }))).toMatchObject({ code: 'JOBBOARD_TIMEOUT' })
      const waiting = board.claimNext()
      await place.observer.delete(lock)
      expect((await waiting)[0].run).toBe(1)
    })

    test('a trash folder taken away by hand leaves the claim what it was', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.post('flow', {})
      const [claim] = await board.claimNext()
      await place.observer.delete(`${place.path}/.trash`)
      expect(String(await rejectionOf(claim.trash()))).toContain('.trash')
      expect(claim.lost.aborted).toBe(false)
      await claim.consume()
      expect(await place.jobNodes()).toEqual([])
    })

    test('a marker taken away by hand is made anew', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.post('flow', {})
      const sessions = `${place.path.replace('/', '/.')}-sessions`
      const [marker] = (await place.observer.getChildren(sessions)).names
      await place.observer.delete(`${sessions}/${marker}`)
      await (await board.claimNext())[0].consume()
      await place.observer.deleteRecursive(sessions)
      await board.post('flow', {})
      expect(await namesOn(board)).toEqual(['flow'])
    })

    test('a spoilt trash entry is reported, and the others are listed', async () => {
      await using place = await zookeeperPlace()
      await using board = await place.open()
      await board.post('flow', {}, { name: 'job' })
      await (await claimed(board, 'job')).trash()
      await place.observer.create(`${place.path}/.trash/job0000009999`, Buffer.from('garbage'))
      const reported = nextEvent(board, 'error')
      expect((await all(board.trashed())).map(({ name }) => name)).toEqual(['job'])
      expect(String((await reported).error)).toContain('job0000009999')
    })
  })
})
