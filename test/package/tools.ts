/** The files of applications that `tools.test.ts` runs with tools of other people. */

const FLOW = `
const greet = task('greet', { requires: ['name'], provides: 'text', execute: ({ name }) => 'Hello, ' + name + '!' })
const hello = linear('hello', input(), greet)
`

const JEST_TESTS = `
test('a conductor runs a job on a board in memory', async () => {
  const { input, linear, openBoard, startConductor, task } = jobboard
  ${FLOW}
  const board = await openBoard('memory:')
  const conductor = await startConductor({ board, flows: [hello], persistence: 'memory:' })
  const job = await board.post(hello, { name: 'Ada' })
  expect(await job.wait()).toBe('COMPLETE')
  await conductor[Symbol.asyncDispose]()
  await board[Symbol.asyncDispose]()
})

test('a workbench drains a job', async () => {
  const { input, linear, task } = jobboard
  const { workbench } = testing
  ${FLOW}
  const bench = await workbench({ flows: [hello] })
  const job = await bench.board.post(hello, { name: 'Ada' })
  await bench.drain()
  expect(await job.wait()).toBe('COMPLETE')
  await bench[Symbol.asyncDispose]()
})

test('errors have their classes', async () => {
  const { InvalidArgument, openBoard } = jobboard
  await expect(openBoard('memory:', { wo: 'me' })).rejects.toThrow(InvalidArgument)
})
`

export const TEXTS = {
  jestModule: `
import * as jobboard from 'jobboard'
import * as testing from 'jobboard/testing'
${JEST_TESTS}`,

  jestCommonJs: `
let jobboard, testing
beforeAll(async () => {
  jobboard = await import('jobboard')
  testing = await import('jobboard/testing')
})
${JEST_TESTS}`,

  /** As docs/guides/testing.md has it. */
  jestEnvironment: `
const { TestEnvironment } = require('jest-environment-node')

module.exports = class extends TestEnvironment {
  async setup() {
    await super.setup()
    for (const name of ['dispose', 'asyncDispose']) this.global.Symbol[name] ??= Symbol[name]
  }
}`,

  /** The mounts of docs/guides/dashboard.md. */
  web: `
import { once } from 'node:events'
import { serve } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import { openBoard } from 'jobboard'
import { dashboard } from 'jobboard/ui'

const board = await openBoard('memory:')
const jobs = () => dashboard({ board })
const host = '127.0.0.1'

const ofExpress = express().use('/jobs', jobs().node).listen(0, host)
await once(ofExpress, 'listening')

const ofFastify = fastify()
const { node } = jobs()
ofFastify.register(async (scope) => {
  scope.removeAllContentTypeParsers()
  scope.addContentTypeParser('*', (request, payload, done) => done(null))
  scope.all('/jobs/*', (request, reply) => {
    reply.hijack()
    node(request.raw, reply.raw)
  })
})
await ofFastify.listen({ port: 0, host })

const app = new Hono()
const { fetch: handler } = jobs()
app.all('/jobs/*', (context) => handler(context.req.raw, context.env))
const ofHono = serve({ fetch: app.fetch, port: 0, hostname: host })
await once(ofHono, 'listening')

for (const [name, server] of Object.entries({ express: ofExpress, fastify: ofFastify.server, hono: ofHono })) {
  const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).status
  console.log(name, await get('/jobs/'), await get('/jobs/api/v1/session'))
}
process.exit(0)`,

  isolatedFlow: `
import { input, linear, task } from 'jobboard'

const where = task('where', {
  requires: ['parent'],
  isolate: true,
  execute: ({ parent }: { parent: number }) => {
    if (process.pid === parent) throw new Error('it runs in the process of the conductor')
  },
})
export const hashing = linear('where', input<{ parent: number }>(), where)`,

  isolatedMain: `
import { openBoard, startConductor } from 'jobboard'
import { hashing } from './flows.js'

const board = await openBoard('memory:')
const pool = { module: new URL('./flows.js', import.meta.url) }
const conductor = await startConductor({ board, persistence: 'memory:', flows: [hashing], pool })
const job = await board.post(hashing, { parent: process.pid }, { maxAttempts: 1 })
console.log(await job.wait(), 'in another process')
await conductor.stop()
await board.close()`,

  /** Every error that is expected is one: nothing is \`any\`. */
  typed: `
import { input, linear, runFlow, task } from 'jobboard'
import { workbench } from 'jobboard/testing'
import { ZooKeeper } from 'jobboard/zookeeper'
import * as ui from 'jobboard/ui'

const greet = task('greet', { requires: ['name'], provides: 'text', execute: ({ name }: { name: string }) => 'Hello, ' + name + '!' })
const hello = linear('hello', input<{ name: string }>(), greet)

async function main(): Promise<void> {
  await using bench = await workbench({ flows: [hello] })
  // @ts-expect-error: a clock is turned by a time
  const turn = () => bench.clock.advance('soon')
  // @ts-expect-error: the name is a text
  const wrong = () => runFlow(hello, { name: 7 })
  if ([turn, wrong, ZooKeeper, ui].includes(undefined as never)) throw new Error('something is missing')
  console.log((await runFlow(hello, { name: 'Ada' })).results.text)
}
void main()`,
}
