/** What a connection of the C client does with its handle, in an order that keeps the process alive. */
import { expect, test } from 'vitest'
import {
  type NativeCloseReason,
  NativeConnection,
  type NativeConnectionOwner,
} from '../../../src/zookeeper/native/connection.ts'
import { ECHO_REQUEST } from '../../../src/zookeeper/native/lease.ts'
import {
  NATIVE_CODE,
  NATIVE_STATE,
  type NativeConfig,
  type NativePackage,
} from '../../../src/zookeeper/native/package.ts'

type Done = (code: number) => void

const turn = () => new Promise((resolve) => setImmediate(resolve))

/** A handle as the package makes it, as far as a connection uses it; what is called is in `calls`, in order. */
class FakeHandle {
  readonly config: NativeConfig
  readonly calls: string[] = []
  readonly pending: Done[] = []
  readonly client_id = '10'
  readonly client_password = 'AB'
  readonly timeout = 10_000
  readonly #listeners = new Map<string, (...args: never[]) => void>()
  state: number = NATIVE_STATE.none
  /** What a request finds: the socket is closed in it. */
  broken = false
  startState: number = NATIVE_STATE.connecting

  constructor(config: NativeConfig) {
    this.config = config
  }

  on(event: string, listener: (...args: never[]) => void): void {
    this.#listeners.set(event, listener)
  }

  emit(event: 'connect' | 'connecting'): void {
    this.#listeners.get(event)?.()
  }

  init(): void {
    this.state = this.startState
  }

  add_auth(): number {
    return 0
  }

  a_sync(_path: string, done: Done): number {
    this.pending.push(done)
    if (this.broken) this.state = NATIVE_STATE.notConnected
    return 0
  }

  set_servers(): number {
    this.calls.push('set_servers')
    this.state = NATIVE_STATE.notConnected
    return 0
  }

  close(): void {
    this.calls.push(`close in state ${this.state}`)
    this.state = NATIVE_STATE.none
    for (const done of this.pending.splice(0)) done(NATIVE_CODE.closing)
  }
}

function packageOf(made: unknown): NativePackage {
  if (isPackage(made)) return made
  throw new Error('a class is needed')
}

const isPackage = (made: unknown): made is NativePackage => typeof made === 'function'

function open(options: { readonly startState?: number; readonly address?: string } = {}) {
  const handles: FakeHandle[] = []
  class Package extends FakeHandle {
    constructor(config: NativeConfig) {
      super(config)
      this.startState = options.startState ?? NATIVE_STATE.connecting
      handles.push(this)
    }
  }
  const reported: (string | NativeCloseReason)[] = []
  const owner: NativeConnectionOwner = {
    attached: () => reported.push('attached'),
    ready: () => reported.push('ready'),
    closed: (_, end) => reported.push(end),
  }
  const connection = new NativeConnection(
    {
      package: packageOf(Package),
      server: { host: 'zk', port: 2181, address: options.address ?? '10.0.0.1' },
      chroot: '/root',
      sessionTimeout: 10_000,
      auth: [],
      barrier: ECHO_REQUEST,
    },
    owner,
  )
  connection.open()
  const [handle] = handles
  if (!handle) throw new Error('a handle is made by open()')
  return { connection, handle, reported }
}

async function openedAndReady() {
  const opened = open()
  opened.handle.state = NATIVE_STATE.connected
  opened.handle.emit('connect')
  opened.handle.pending.shift()?.(NATIVE_CODE.ok)
  await turn()
  return opened
}

test('nothing runs inside a callback of the package', async () => {
  const { handle, reported } = open()
  handle.state = NATIVE_STATE.connected
  handle.emit('connect')
  handle.pending.shift()?.(NATIVE_CODE.ok)
  expect(reported).toEqual([])
  await turn()
  expect(reported).toEqual(['attached', 'ready'])
  handle.state = NATIVE_STATE.none
  handle.emit('connecting')
  expect([handle.calls, reported.length]).toEqual([[], 2])
  await turn()
  expect([handle.calls, reported.length]).toEqual([['close in state 0'], 3])
})

test('a request that finds the socket closed closes the handle in the same call, and was not sent; others are unknown', async () => {
  const { connection, handle, reported } = await openedAndReady()
  const answers: (readonly [string, number])[] = []
  expect(connection.send(ECHO_REQUEST, (code) => answers.push(['under way', code]))).toBe('sent')
  handle.broken = true
  expect(connection.send(ECHO_REQUEST, (code) => answers.push(['unsent', code]))).toBe('unsent')
  expect(handle.calls).toEqual([`close in state ${NATIVE_STATE.notConnected}`])
  expect(connection.send(ECHO_REQUEST, () => undefined)).toBe('unsent')
  await turn()
  expect(answers).toEqual([['under way', NATIVE_CODE.connectionLoss]])
  expect(reported.slice(2)).toEqual([{ why: 'the connection to zk:2181 is over: a request could not be sent' }])
})

test('what is released leaves its session: its socket is closed first; what is ended ends it', async () => {
  const released = await openedAndReady()
  const codes: number[] = []
  released.connection.send(ECHO_REQUEST, (code) => codes.push(code))
  released.connection.release()
  expect(released.handle.calls).toEqual(['set_servers', `close in state ${NATIVE_STATE.notConnected}`])
  const ended = await openedAndReady()
  ended.connection.send(ECHO_REQUEST, (code) => codes.push(code))
  ended.connection.end()
  expect(ended.handle.calls).toEqual([`close in state ${NATIVE_STATE.connected}`])
  await turn()
  expect(codes).toEqual([NATIVE_CODE.connectionLoss, NATIVE_CODE.closing])
  expect([released.reported.length, ended.reported.length]).toEqual([2, 2])
})

test('a request is not given to a handle without a connection, which would keep it', async () => {
  const { connection, handle } = await openedAndReady()
  handle.state = NATIVE_STATE.none
  expect(connection.send(ECHO_REQUEST, () => undefined)).toBe('unsent')
  expect(handle.pending).toEqual([])
  connection.end()
})

test('a handle that could open no socket is closed and reported: the package would do nothing more with it', async () => {
  const { handle, reported } = open({ startState: NATIVE_STATE.none })
  await turn()
  expect(handle.calls).toEqual(['close in state 0'])
  expect(reported).toEqual([{ why: 'the connection to zk:2181 is over: no socket could be opened' }])
})

test.each([
  ['10.0.0.1', '10.0.0.1:2181/root'],
  ['::1', '::1:2181/root'],
])('an address in digits is given to the C client: %s', async (address, connect) => {
  const { connection, handle } = open({ address })
  expect(handle.config.connect).toBe(connect)
  connection.release()
})
