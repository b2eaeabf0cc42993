/** A worker for tests: its settings and its work say what goes wrong. Plain JavaScript, as a child imports it without a loader. */
import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, existsSync, readFileSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { serialize } from 'node:v8'

const CHANNEL_FD = 3

/** Writes a message as the child itself does, and waits while the pipe is full. */
function writeMessage(message) {
  const body = serialize(message)
  const frame = Buffer.alloc(4 + body.length)
  frame.writeUInt32BE(body.length)
  body.copy(frame, 4)
  for (let at = 0; at < frame.length; ) {
    try {
      at += writeSync(CHANNEL_FD, frame, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
    }
  }
}

function spin() {
  while (true) Math.random()
}

const KINDS = {
  echo: async ({ value }) => value,
  note: async ({ notes }, { post }) => {
    for (const note of notes) post(note)
    return process.pid
  },
  pid: async () => process.pid,
  throw: async () => {
    throw Object.assign(new TypeError('no such picture', { cause: new Error('disk') }), { code: 'E_PICTURE' })
  },
  throwText: async () => {
    throw 'just a text'
  },
  exit: async () => process.exit(0),
  say: async ({ line }) => {
    console.log(line)
    process.exit(3)
  },
  abort: async () => process.abort(),
  /** Says that it has begun, by a file, and computes for ever. */
  spin: async ({ file }) => {
    appendFileSync(file, `${process.pid}\n`)
    spin()
  },
  /** Waits, and ignores its signal. */
  ignore: async ({ file }) => {
    appendFileSync(file, `${process.pid}\n`)
    await sleep(600_000)
  },
  heed: async ({ file }, { signal }) => {
    appendFileSync(file, `${process.pid}\n`)
    await sleep(600_000, undefined, { signal }).catch(() => undefined)
    throw signal.reason
  },
  /** Returns what its signal says. */
  reason: async ({ file }, { signal }) => {
    appendFileSync(file, `${process.pid}\n`)
    await sleep(600_000, undefined, { signal }).catch(() => undefined)
    const { code, message } = signal.reason
    return { name: signal.reason.constructor.name, code, message }
  },
  /** Starts a process of its own, and computes for ever. */
  grandchild: async ({ file }) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
    appendFileSync(file, `${process.pid}\n${child.pid}\n`)
    spin()
  },
  /** Starts a process of its own, and waits. */
  waitingGrandchild: async ({ file }) => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' })
    appendFileSync(file, `${process.pid}\n${child.pid}\n`)
    await sleep(600_000)
  },
  /** Ends, and leaves memory behind. */
  leak: async ({ megabytes }) => {
    globalThis.leaked = Buffer.alloc(megabytes * 1024 ** 2, 1)
    return process.pid
  },
  heap: async () => {
    const lists = []
    while (true) lists.push(new Array(100_000).fill({}).map((_, n) => ({ n })))
  },
  buffers: async () => {
    const buffers = []
    while (true) {
      buffers.push(Buffer.alloc(8 * 1024 ** 2, 1))
      await sleep(5)
    }
  },
  flood: async ({ lines }) => {
    for (let line = 0; line < lines; line++) console.log(`line ${line}`)
  },
  fault: async () => {
    setTimeout(() => {
      throw new Error('thrown by a timer')
    })
    await sleep(600_000)
  },
  rejection: async () => {
    void Promise.reject(new Error('nobody awaits this'))
    await sleep(600_000)
  },
  big: async ({ bytes }) => Buffer.alloc(bytes),
  /** Dies right after its result was given to the channel: a large one is only half written by then. */
  dieAfter: async ({ bytes }) => {
    setImmediate(() => process.kill(process.pid, 'SIGKILL'))
    return Buffer.alloc(bytes)
  },
  /** Notes when it begins and ends, by a file; takes a while, so that others could begin meanwhile. */
  visit: async ({ file }) => {
    appendFileSync(file, `begin ${process.pid}\n`)
    await sleep(300)
    appendFileSync(file, `end ${process.pid}\n`)
  },
  /** Writes to the channel what no child writes: messages, or bytes that are none. */
  tell: async ({ messages = [], bytes, last }) => {
    for (const message of messages) writeMessage(message)
    if (bytes) writeSync(CHANNEL_FD, bytes)
    if (last === 'wait') await sleep(600_000)
    return process.pid
  },
  /** Writes the same message without a pause. */
  floodChannel: async ({ message, count, file }) => {
    for (let n = 0; n < count; n++) writeMessage({ ...message, question: n })
    if (file) appendFileSync(file, `${process.pid}\n`)
    return process.pid
  },
  /** A failure that is its own cause, and one with a million causes. */
  cycle: async ({ isWide, number }) => {
    const failure = { name: 'Error', message: 'of itself' }
    failure.causes = isWide ? Array.from({ length: 100_000 }, () => failure) : [failure]
    writeMessage({ kind: 'failed', number, failure, isLast: false })
    await sleep(600_000)
  },
  environment: async () => ({ ...process.env }),
  /** Ends, and leaves a timer that throws while the next work is done. */
  lateFault: async ({ file }) => {
    // The next work has begun when it has written the file.
    const waiting = setInterval(() => {
      if (!existsSync(file)) return
      clearInterval(waiting)
      throw new Error('of the first work')
    }, 10)
    return process.pid
  },
  /** Closes its channel, and lives on. */
  disconnect: async ({ file }) => {
    setImmediate(() => {
      // The code of the child would end it at once: the channel is closed without its knowledge.
      process.kill = () => undefined
      closeSync(CHANNEL_FD)
    })
    appendFileSync(file, `${process.pid}\n`)
    return process.pid
  },
  /** Asks the questions at the same time, and returns the answers, or the errors. */
  ask: async ({ questions }, { ask, signal }) =>
    Promise.all(
      questions.map((question) =>
        ask(question, { signal }).catch((error) => {
          const { code, message } = error
          return { name: error.constructor.name, code, message }
        }),
      ),
    ),
  /** Asks, does not wait for the answer, and works on. */
  askAndDrop: async ({ question }, { ask }) => {
    const stop = new AbortController()
    const asking = ask(question, { signal: stop.signal })
    setTimeout(() => stop.abort(new Error('dropped')), 20)
    return asking.catch((error) => error.message)
  },
  /** Asks, and says so by a file. */
  askInFile: async ({ file, question }, { ask, signal }) => {
    appendFileSync(file, `${process.pid}\n`)
    return ask(question, { signal })
  },
  uncloneable: async () => ({ deep: { inside: () => undefined } }),
}

export async function openWorker({ fails, file, facts = 'fine' } = {}) {
  if (fails === 'always' || (fails === 'while' && existsSync(file))) throw new Error('the worker cannot be opened')
  if (fails === 'hang') spin()
  if (fails === 'exit') process.exit(0)
  if (fails === 'greet') writeMessage('ready')
  if (fails === 'talk') {
    console.error('the licence has expired')
    process.exit(3)
  }
  return {
    facts: facts === 'file' ? readFileSync(file, 'utf8') : facts,
    run: (work, context) => KINDS[work.kind](work, context),
    [Symbol.asyncDispose]: async () => {
      if (file && fails === undefined) appendFileSync(file, `disposed ${process.pid}\n`)
    },
  }
}
