/** The stream of changes, and what a dashboard costs a board while nobody looks at it. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type JobBoard, openBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { createDeferred } from '../../src/core/async/abort.ts'
import { silentLog } from '../../src/core/log.ts'
import { BoardFeed, IDLE_MS } from '../../src/ui/boards/board-feed.ts'
import { ChangeStreams, StreamCounter } from '../../src/ui/change-streams.ts'
import { type Dashboard, dashboard } from '../../src/ui/index.ts'
import { change, type WireChange } from '../../src/ui/wire/live.ts'
import { nextEvent } from '../board/events.ts'
import { LOCAL, ORIGIN, serve } from './client.ts'

let board: JobBoard
let opened: Dashboard

beforeEach(async () => {
  board = await openBoard('memory:')
  opened = dashboard({ board })
})

afterEach(async () => {
  vi.useRealTimers()
  await opened.close()
  await board.close()
})

interface Message {
  readonly id: string
  readonly event: string
  readonly data: WireChange
}

/** Reads the messages of a stream. */
async function* messages(response: Response): AsyncGenerator<Message, void, undefined> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = new Map(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
      )
      text = text.slice(end + 2)
      const data = fields.get('data')
      if (data === undefined) continue
      yield {
        id: fields.get('id') ?? '',
        event: fields.get('event') ?? 'message',
        data: change.parse(JSON.parse(data)),
      }
    }
  }
}

const stream = async ({ jobs = '', lastEventId, since = '' }: Record<string, string> = {}) => {
  const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const query = new URLSearchParams({ jobs, ...(since && { since }) })
  const response = await opened.fetch(new Request(`${ORIGIN}/api/v1/boards/main/events?${query}`, { headers }), LOCAL)
  return { response, messages: messages(response) }
}

const next = async (from: AsyncGenerator<Message, void, undefined>): Promise<Message> => {
  const { value, done } = await from.next()
  if (done || !value) throw new Error('the stream has ended')
  return value
}

/** Collects topics until there is the wanted one. */
const until = async (from: AsyncGenerator<Message, void, undefined>, topic: string): Promise<Set<string>> => {
  const topics = new Set<string>()
  while (!topics.has(topic)) for (const one of (await next(from)).data.topics) topics.add(one)
  return topics
}

test('a stream names what has changed, and the jobs that were asked for', async () => {
  const [mine, other] = [await board.post('a', {}), await board.post('a', {})]
  const { response, messages } = await stream({ jobs: mine.uuid })
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  await (await board.claim(mine)).trash({ reason: 'x' })
  await (await board.claim(other)).consume()
  const topics = await until(messages, 'trash')
  expect(topics).toContain('jobs')
  expect(topics).toContain(mine.uuid)
  expect(topics).not.toContain(other.uuid)
})

test('changes of limits, schedules and settings of flows are topics', async () => {
  const { messages } = await stream()
  await board.limits.set('x', { concurrency: 1 })
  await until(messages, 'limits')
  await board.limits.stop('x')
  await until(messages, 'limits')
  await board.flowSettings.set('x', { enabled: false })
  await until(messages, 'flows')
})

test('many changes are few messages', async () => {
  const { messages } = await stream()
  await next(messages)
  const begun = performance.now()
  let received = 0
  const posting = board.postMany(Array.from({ length: 2_000 }, () => ({ flow: 'a', store: {} })))
  await posting
  const last = await board.post('last', {})
  await (await board.claim(last)).trash({ reason: 'end' })
  for (let over = false; !over; received += 1) over = (await next(messages)).data.topics.includes('trash')
  const periods = (performance.now() - begun) / 250
  expect(received).toBeLessThanOrEqual(Math.ceil(periods) + 2)
})

describe('a reader that comes back', () => {
  test.each(['lastEventId', 'since'])('gets what it has missed, by %s', async (how) => {
    const first = await stream()
    const { id } = await next(first.messages)
    await first.messages.return()
    const job = await board.post('a', {})
    const second = await stream({ [how]: id, jobs: job.uuid })
    const { event, data } = await next(second.messages)
    expect([event, new Set(data.topics)]).toEqual(['message', new Set(['jobs', job.uuid])])
  })

  test('after the feed was closed gets reset, because changes were not reported', async () => {
    const streams = new ChangeStreams('main')
    const open = async (lastEventId: string | null) => {
      const abort = new AbortController()
      const response = streams.open({ jobs: new Set(), lastEventId, signal: abort.signal, held: [] })
      const message = await next(messages(response))
      abort.abort()
      return message
    }
    const { id } = await open(null)
    streams.publish(['jobs'])
    expect((await open(id)).event).toBe('message')
    streams.forget()
    expect((await open(id)).event).toBe('reset')
  })

  test.each(['nonsense', '0123456789ab-1', '9'.repeat(1_000)])(
    'from elsewhere (%s) begins anew',
    async (lastEventId) => {
      const { messages } = await stream({ lastEventId })
      expect((await next(messages)).event).toBe('reset')
    },
  )

  test('after too many changes begins anew', async () => {
    const streams = new ChangeStreams('main')
    const open = (lastEventId: string | null) =>
      streams.open({ jobs: new Set(), lastEventId, signal: new AbortController().signal, held: [] })
    const { id } = await next(messages(open(null)))
    for (let index = 0; index < 5_000; index += 1) streams.publish(['jobs'])
    expect((await next(messages(open(id)))).event).toBe('reset')
    streams.close()
  })
})

test('a reader that reads nothing keeps little', async () => {
  const streams = new ChangeStreams('main')
  const ended = vi.fn()
  const held = [{ [Symbol.dispose]: ended }]
  const response = streams.open({ jobs: new Set(), lastEventId: null, signal: new AbortController().signal, held })
  vi.useFakeTimers()
  for (let round = 0; round < 20_000; round += 1) {
    streams.publish(['jobs'])
    vi.advanceTimersByTime(250)
  }
  vi.useRealTimers()
  streams.close()
  let bytes = 0
  for await (const chunk of response.body ?? []) bytes += chunk.byteLength
  expect(bytes).toBeLessThan(64_000)
  expect(ended).toHaveBeenCalledOnce()
})

test('there are at most a thousand streams, and some of one address', () => {
  const counter = new StreamCounter()
  const held = Array.from({ length: 200 }, () => counter.add('10.0.0.1'))
  expect(() => counter.add('10.0.0.1')).toThrow('too many streams')
  for (let index = 0; index < 800; index += 1) held.push(counter.add(`10.0.1.${index}`))
  expect(() => counter.add('10.0.2.1')).toThrow('too many streams')
  for (const one of held) one[Symbol.dispose]()
  held[0]?.[Symbol.dispose]()
  expect(counter.streams).toBe(0)
})

test('a stream that its reader cancels is over', async () => {
  const streams = new ChangeStreams('main')
  const ended = vi.fn()
  const held = [{ [Symbol.dispose]: ended }]
  const response = streams.open({ jobs: new Set(), lastEventId: null, signal: new AbortController().signal, held })
  await response.body?.cancel()
  streams.publish(['jobs'])
  expect(ended).toHaveBeenCalledOnce()
})

test('a browser that goes away frees its place', async () => {
  await using server = await serve(opened.node)
  const going = new AbortController()
  const open = () => fetch(`${server.url}/api/v1/boards/main/events`, { signal: going.signal })
  // The answers are kept: fetch ends the connection of one that is collected as garbage.
  const responses = await Promise.all(Array.from({ length: 201 }, open))
  expect(responses.filter(({ status }) => status === 503)).toHaveLength(1)
  going.abort()
  await vi.waitFor(async () => {
    const again = new AbortController()
    const { status } = await fetch(`${server.url}/api/v1/boards/main/events`, { signal: again.signal })
    again.abort()
    expect(status).toBe(200)
  }, 20_000)
  expect(responses).toHaveLength(201)
})

describe('a stream whose reader is gone takes no place', () => {
  const counted = () => {
    let isFree = false
    const free = () => {
      isFree = true
    }
    const held = [{ [Symbol.dispose]: free }]
    return { held, isFree: () => isFree }
  }

  test('if it left while the board was being read', () => {
    const { held, isFree } = counted()
    new ChangeStreams('main').open({ jobs: new Set(), lastEventId: null, signal: AbortSignal.abort(), held })
    expect(isFree()).toBe(true)
  })

  test('if the dashboard was closed while the board was being read', async () => {
    const view = board.view.bind(board)
    const closed = createDeferred()
    vi.spyOn(board, 'view').mockImplementation(async () => {
      await closed.promise
      return view()
    })
    const answered = opened.fetch(new Request(`${ORIGIN}/api/v1/boards/main/events`), LOCAL)
    await opened.close()
    closed.resolve()
    expect((await answered).status).toBe(503)
  })

  test('if it asked for the headers only', async () => {
    for (let index = 0; index < 205; index += 1) {
      const { status } = await opened.fetch(
        new Request(`${ORIGIN}/api/v1/boards/main/events`, { method: 'HEAD' }),
        LOCAL,
      )
      expect(status).toBe(200)
    }
  })
})

describe('nobody looks', () => {
  test('the feed is closed before the first request for its board', async () => {
    await opened.fetch(new Request(`${ORIGIN}/api/v1/session`), LOCAL)
    expect(board.jobCount).toBeUndefined()
    await opened.fetch(new Request(`${ORIGIN}/api/v1/boards/main/jobs`), LOCAL)
    expect(board.jobCount).toBe(0)
  })

  test('a job that ended while the feed was open is not counted again from the history when it is opened again', async () => {
    const feed = new BoardFeed({ board, log: silentLog, onTopics: () => undefined, onChange: () => undefined })
    const counts = () => {
      const minutes = feed.throughput.last(Date.now())
      const sum = (counter: 'posted' | 'done') => minutes.reduce((total, minute) => total + minute[counter], 0)
      return { posted: sum('posted'), done: sum('done') }
    }
    const doJob = async (flow: string) => {
      await board.post(flow, {})
      const [claim] = await board.claimNext()
      const consumed = nextEvent(board, 'consumed')
      await claim.consume()
      await consumed
      // Times are compared by the millisecond: the next step is in another one.
      for (const endedAt = Date.now(); Date.now() === endedAt; ) await new Promise(setImmediate)
    }
    await doJob('before the feed')
    await feed.hold()
    await doJob('while it is open')
    expect(counts()).toEqual({ posted: 2, done: 2 })
    await feed.close()
    await doJob('while it is closed')
    await feed.hold()
    expect(counts()).toEqual({ posted: 3, done: 3 })
    await feed.close()
  })

  test('a feed that was closed while its view was being opened takes no events from the next opening', async () => {
    const [late, history] = [createDeferred(), createDeferred()]
    const [view, read] = [board.view.bind(board), board.history.bind(board)]
    vi.spyOn(board, 'view').mockImplementationOnce(async () => {
      await late.promise
      return view()
    })
    const reading = new Promise<void>((started) => {
      vi.spyOn(board, 'history').mockImplementation(async (options) => {
        started()
        await history.promise
        return read(options)
      })
    })
    const feed = new BoardFeed({ board, log: silentLog, onTopics: () => undefined, onChange: () => undefined })
    const first = feed.hold()
    await feed.close()
    const second = feed.hold()
    await reading
    late.resolve()
    await first
    await board.post('while the history is read', {})
    history.resolve()
    await second
    expect(feed.throughput.last(Date.now()).reduce((sum, { posted }) => sum + posted, 0)).toBe(1)
    await feed.close()
  })

  test('a minute after the last request the feed is closed', async () => {
    const topics: string[] = []
    const onTopics = (some: readonly string[]) => void topics.push(...some)
    const feed = new BoardFeed({ board, log: silentLog, onTopics, onChange: () => undefined })
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    await feed.touch()
    await vi.advanceTimersByTimeAsync(IDLE_MS - 1_000)
    await feed.touch()
    await vi.advanceTimersByTimeAsync(IDLE_MS - 1_000)
    expect(feed.isOpen).toBe(true)
    const held = await feed.hold()
    await vi.advanceTimersByTimeAsync(10 * IDLE_MS)
    expect(feed.isOpen).toBe(true)
    held[Symbol.dispose]()
    await vi.advanceTimersByTimeAsync(IDLE_MS)
    expect(feed.isOpen).toBe(false)
    vi.useRealTimers()
    boardInternals(board).closeUnusedView()
    expect(board.jobCount).toBeUndefined()
    topics.length = 0
    await board.post('a', {})
    expect(topics).toEqual([])
  })
})
