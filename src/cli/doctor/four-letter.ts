/** Requests to each ZooKeeper server by the four-letter word that all servers answer: `srvr`. */

import { connect } from 'node:net'
import { messageOf } from '../../core/errors.ts'
import type { Endpoint } from '../../zookeeper/index.ts'

export interface ServerAnswer {
  readonly address: string
  readonly version?: string
  /** The mode: `leader`, `follower`, `standalone`, … */
  readonly mode?: string
  /** The reason for a missing answer: `does not answer: …` */
  readonly fault?: string
  /** Whether it runs, and waits for the majority of its ensemble. */
  readonly lacksMajority?: true
}

/** The time limit for an answer. */
const ANSWER_TIMEOUT_MS = 3_000
/** The limit of an answer: a hundred times its usual length. */
const MAX_ANSWER_CHARACTERS = 64 * 1024

export function askServers(endpoints: readonly Endpoint[]): Promise<ServerAnswer[]> {
  return Promise.all(endpoints.map(askServer))
}

async function askServer({ host, port }: Endpoint): Promise<ServerAnswer> {
  const address = `${host}:${port}`
  try {
    const answer = await sendSrvr({ host, port })
    if (/not currently serving/.test(answer))
      return { address, fault: 'runs, and serves no clients: its ensemble has no majority', lacksMajority: true }
    const [, version] = /Zookeeper version: (\d+\.\d+\.\d+)/.exec(answer) ?? []
    const [, mode] = /Mode: (\w+)/.exec(answer) ?? []
    return { address, ...(version ? { version } : {}), ...(mode ? { mode } : {}) }
  } catch (error) {
    return { address, fault: `does not answer: ${messageOf(error)}` }
  }
}

function sendSrvr(at: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect({ ...at, timeout: ANSWER_TIMEOUT_MS }, () => socket.end('srvr'))
    socket.setEncoding('utf8')
    socket.on('data', (text) => {
      answer += text
      if (answer.length > MAX_ANSWER_CHARACTERS)
        socket.destroy(
          new Error(`its answer is longer than ${MAX_ANSWER_CHARACTERS} characters: it is not a ZooKeeper`),
        )
    })
    socket.on('timeout', () => socket.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1_000}s`)))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}
