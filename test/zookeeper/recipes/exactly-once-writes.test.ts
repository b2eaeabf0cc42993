import { describe, expect, test } from 'vitest'
import { createDeferred } from '../../../src/core/async/abort.ts'
import { InvalidArgument } from '../../../src/core/errors.ts'
import {
  BadVersion,
  ConnectionLoss,
  type ExactlyOnceClient,
  idempotentDelete,
  NoNode,
  NotEmpty,
  NotSent,
  PERMISSION,
  protectedCreate,
  versionedSetData,
  ZooKeeper,
} from '../../../src/zookeeper/index.ts'
import { expireSession } from '../../support/expire-session.ts'
import { zookeeperHosts } from '../../support/namespace.ts'
import { failureOf, reaches, sessionOf, text } from '../clients.ts'
import { losing, lost, nextChange, startLostReplyServer } from './lost-answers.ts'

describe.skipIf(!zookeeperHosts)('a protected create', () => {
  test('is a create, under a name that can be found again', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    const uuid = '_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    const plain = await protectedCreate(client, `${path}/plain`, Buffer.from('d'))
    expect(plain.path).toMatch(new RegExp(`^${path}/${uuid}-plain$`))
    expect(await client.exists(plain.path)).toEqual(plain.stat)
    const sequential = await protectedCreate(client, `${path}/n-`, null, { sequential: true, ephemeral: true })
    expect(sequential.path).toMatch(new RegExp(`^${path}/${uuid}-n-0000000001$`))
    const nameless = await protectedCreate(client, `${path}/`, null, { sequential: true })
    expect(nameless.path).toMatch(new RegExp(`^${path}/${uuid}-0000000002$`))
    expect(await failureOf(protectedCreate(client, `${path}/none/x`))).toBeInstanceOf(NoNode)
    expect(await failureOf(protectedCreate(client, 'x'))).toBeInstanceOf(InvalidArgument)
    const atTheTop = await protectedCreate(client, '/top', null, { ephemeral: true })
    expect(atTheTop.path).toMatch(new RegExp(`^/${uuid}-top$`))
  })

  test.each([
    ['the answer', {}],
    ['the answer', { sequential: true }],
    ['the answer', { ephemeral: true }],
    ['the answer', { ephemeral: true, sequential: true }],
    ['the request', {}],
    ['the request', { ephemeral: true, sequential: true }],
  ] as const)('makes exactly one znode when %s is lost (%j)', async (what, mode) => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const session = sessionOf(client)
    const created = await lost(lab, what, (failing) => protectedCreate(failing, `${path}/n-`, Buffer.from('d'), mode))
    expect(sessionOf(client)).toBe(session)
    const { names } = await observer.getChildren(path)
    expect(names.map((name) => `${path}/${name}`)).toEqual([created.path])
    expect(await observer.exists(created.path)).toEqual(created.stat)
    expect(created.stat.ephemeralOwner).toBe('ephemeral' in mode ? session : 0n)
  })

  test('never takes an ephemeral znode from a session that has ended', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, proxy, path } = lab
    const before = sessionOf(client)
    const creating = lost(
      lab,
      'the answer',
      (failing) => protectedCreate(failing, `${path}/n-`, null, { ephemeral: true, sequential: true }),
      () => expireSession(zookeeperHosts, before),
    )
    expect(await failureOf(creating)).toMatchObject({ name: 'SessionExpired', outcome: 'unknown' })
    proxy.mode = 'pass'
    await client.sync('/')
    expect(sessionOf(client)).not.toBe(before)
    expect((await observer.getChildren(path)).names).toEqual([])
  })

  test('finds a persistent one from the next session, but makes none there', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const end = () => expireSession(zookeeperHosts, sessionOf(client))
    const found = await lost(lab, 'the answer', (failing) => protectedCreate(failing, `${path}/kept`), end)
    expect(await observer.exists(found.path)).toEqual(found.stat)
    const refused = lost(lab, 'the request', (failing) => protectedCreate(failing, `${path}/not-done`), end)
    const over = { name: 'SessionExpired', outcome: 'not-sent' }
    expect(await failureOf(refused)).toMatchObject({ ...over, retryable: true })
    const session = sessionOf(client)
    const write = (failing: ExactlyOnceClient) => protectedCreate(failing, `${path}/bound`, null, { session })
    expect(await failureOf(lost(lab, 'the request', write, end))).toMatchObject({ ...over, retryable: false })
    expect((await observer.getChildren(path)).names).toHaveLength(1)
  })

  test('stays unknown when the client cannot read any more', async () => {
    await using lab = await startLostReplyServer({ newSession: 'never' })
    const { client, path } = lab
    const writing = await losing(
      lab,
      'the answer',
      (failing) => protectedCreate(failing, `${path}/a`),
      () => expireSession(zookeeperHosts, sessionOf(client)),
    )
    for (const each of writing) {
      expect(await failureOf(each)).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown' })
    }
  })

  test.each([{}, { sequential: true }, { ephemeral: true, sequential: true }])(
    'that is given up under way leaves nothing behind (%j)',
    async (mode) => {
      await using lab = await startLostReplyServer()
      const { client, proxy, observer, path } = lab
      const gone = createDeferred()
      const watch = await observer.watch(
        path,
        { mode: 'recursive' },
        { events: (batch) => batch.some(({ type }) => type === 'deleted') && gone.resolve(), gap: () => undefined },
      )
      const made = await nextChange(lab)
      proxy.mode = 'swallow-replies'
      const giveUp = new AbortController()
      const creating = failureOf(protectedCreate(client, `${path}/n-`, null, { ...mode, signal: giveUp.signal }))
      await made.happened
      const reason = new Error('enough')
      giveUp.abort(reason)
      expect(await creating).toBe(reason)
      proxy.mode = 'pass'
      proxy.resetAll()
      await gone.promise
      expect((await observer.getChildren(path)).names).toEqual([])
      await watch.remove()
    },
  )

  test('can be found by an id of the caller', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    const { path: made } = await protectedCreate(client, `${path}/n-`, null, { id: 'mine', sequential: true })
    expect(made).toBe(`${path}/_c_mine-n-0000000000`)
    for (const id of ['', 'a/b']) {
      expect(await failureOf(protectedCreate(client, `${path}/n-`, null, { id }))).toBeInstanceOf(InvalidArgument)
    }
  })

  test('waits for the first session, and not for one that is never to come', async () => {
    await using lab = await startLostReplyServer()
    const { client, path, proxy } = lab
    const suspended = reaches(client, 'suspended')
    proxy.resetAll()
    await suspended
    expect((await protectedCreate(client, `${path}/a`)).path).toContain('-a')
    await using early = new ZooKeeper({ hosts: zookeeperHosts })
    const connecting = early.connect()
    expect((await protectedCreate(early, `${path}/b`)).path).toContain('-b')
    await connecting
    await client.close()
    expect(await failureOf(protectedCreate(client, `${path}/a`))).toBeInstanceOf(NotSent)
  })

  test('is given up when its signal fires', async () => {
    await using lab = await startLostReplyServer()
    const { client, path, proxy } = lab
    const controller = new AbortController()
    const reason = new Error('enough')
    proxy.mode = 'blackhole'
    const creating = failureOf(protectedCreate(client, `${path}/a`, null, { signal: controller.signal }))
    controller.abort(reason)
    expect(await creating).toBe(reason)
    proxy.resetAll()
  })
})

describe.skipIf(!zookeeperHosts)('an idempotent delete', () => {
  test('deletes, and does not mind that there is nothing to delete', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    await idempotentDelete(client, path)
    expect(await client.exists(path)).toBeUndefined()
    await idempotentDelete(client, path)
    await idempotentDelete(client, path, { czxid: 5n })
  })

  test('leaves alone what is another znode than the one that was meant', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const czxid = (await client.exists(path))?.czxid ?? 0n
    await observer.delete(path)
    await observer.create(path, Buffer.from('theirs'))
    await idempotentDelete(client, path, { czxid })
    expect(text((await observer.getData(path)).data)).toBe('theirs')
  })

  test('is refused at another version and with children', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    expect(await failureOf(idempotentDelete(client, path, { version: 3 }))).toBeInstanceOf(BadVersion)
    await client.create(`${path}/child`)
    expect(await failureOf(idempotentDelete(client, path))).toBeInstanceOf(NotEmpty)
  })

  test.each(['the answer', 'the request'] as const)('is done when %s is lost', async (what) => {
    await using lab = await startLostReplyServer()
    const { observer, path } = lab
    const czxid = (await observer.exists(path))?.czxid ?? 0n
    await lost(lab, what, (failing) => idempotentDelete(failing, path, { czxid, version: 0 }))
    expect(await observer.exists(path)).toBeUndefined()
  })

  test('leaves alone what was made anew in the meantime', async () => {
    await using lab = await startLostReplyServer()
    const { observer, path } = lab
    const czxid = (await observer.exists(path))?.czxid ?? 0n
    const again = () => observer.create(path, Buffer.from('new'))
    await lost(lab, 'the answer', (failing) => idempotentDelete(failing, path, { czxid }), again)
    expect(text((await observer.getData(path)).data)).toBe('new')
  })
})

describe.skipIf(!zookeeperHosts)('who may write and not read', () => {
  const own = { permissions: PERMISSION.ALL, scheme: 'auth', id: '' }
  const others = (permissions: number) => [own, { permissions, scheme: 'world', id: 'anyone' }]

  test('receives no refusal for what was done', async () => {
    await using lab = await startLostReplyServer()
    const { observer, path } = lab
    await observer.addAuth('digest', 'ada:lovelace')
    const { stat } = await observer.getData(path)
    await observer.setACL(path, others(PERMISSION.CREATE | PERMISSION.WRITE))
    const creating = lost(lab, 'the answer', (failing) =>
      protectedCreate(failing, `${path}/n-`, null, { sequential: true }),
    )
    const error = await failureOf(creating)
    expect(error).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown', cause: { name: 'NoAuth' } })
    expect((await observer.getChildren(path)).names).toHaveLength(1)

    const writing = lost(lab, 'the answer', (failing) => versionedSetData(failing, path, Buffer.from('mine'), stat))
    expect(await failureOf(writing)).toMatchObject({ name: 'ConnectionLoss', outcome: 'unknown', path })
    expect(text((await observer.getData(path)).data)).toBe('mine')
  })
})

describe.skipIf(!zookeeperHosts)('a versioned setData', () => {
  test('writes at the version that was seen, and at no other', async () => {
    await using lab = await startLostReplyServer()
    const { client, path } = lab
    const { stat } = await client.getData(path)
    expect(await versionedSetData(client, path, Buffer.from('1'), stat)).toMatchObject({ version: 1 })
    expect(await failureOf(versionedSetData(client, path, Buffer.from('2'), stat))).toBeInstanceOf(BadVersion)
    expect(text((await client.getData(path)).data)).toBe('1')
  })

  test.each([
    ['the answer', Buffer.from('mine')],
    ['the answer', null],
    ['the request', Buffer.from('mine')],
  ] as const)('is done once when %s is lost', async (what, data) => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const { stat } = await client.getData(path)
    const written = await lost(lab, what, (failing) => versionedSetData(failing, path, data, stat))
    const now = await observer.getData(path)
    expect(now.data && text(now.data)).toBe(data && text(data))
    expect(now.stat).toEqual(written)
    expect(written.version).toBe(1)
  })

  test('is refused when another client was first, though its own answer was lost', async () => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const { stat } = await client.getData(path)
    const theirs = () => observer.setData(path, Buffer.from('theirs'))
    const writing = lost(
      lab,
      'the request',
      (failing) => versionedSetData(failing, path, Buffer.from('mine'), stat),
      theirs,
    )
    expect(await failureOf(writing)).toMatchObject({ name: 'BadVersion', outcome: 'refused', path })
    expect(text((await observer.getData(path)).data)).toBe('theirs')
  })

  test.each<[string, (observer: ZooKeeper, path: string) => Promise<unknown>]>([
    ['written again', (observer, path) => observer.setData(path, Buffer.from('later'))],
    ['deleted', (observer, path) => observer.delete(path)],
    ['made anew', (observer, path) => observer.delete(path).then(() => observer.create(path, Buffer.from('0')))],
  ])('stays unknown when the znode was %s before the client could read it', async (_, change) => {
    await using lab = await startLostReplyServer()
    const { client, observer, path } = lab
    const { stat } = await client.getData(path)
    const write = (failing: ExactlyOnceClient) => versionedSetData(failing, path, Buffer.from('mine'), stat)
    const error = await failureOf(lost(lab, 'the answer', write, () => change(observer, path)))
    expect(error).toBeInstanceOf(ConnectionLoss)
    expect(error).toMatchObject({ outcome: 'unknown' })
  })
})
