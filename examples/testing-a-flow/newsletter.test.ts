/** The tests of the newsletter, with Node's own runner: `node --import tsx --test examples/testing-a-flow/newsletter.test.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeContext, runTask, workbench } from 'jobboard/testing'
import { type Mailer, newsletter, send } from './newsletter.ts'

const LIST = { list: ['ada@example.com', 'nobody', 'grace@example.com'], issue: 7 }

/** Records what was sent; it fails as often as requested. */
function fakeMailer({ failures = 0 } = {}): Mailer & { readonly sent: Map<string, string>; asked: number } {
  return {
    sent: new Map(),
    asked: 0,
    async send(to, { id }) {
      this.asked += 1
      if (this.asked <= failures) throw new Error('421: try again later')
      this.sent.set(id, to)
    },
  }
}

test('a task by itself reports how far it is', async () => {
  const mailer = fakeMailer()
  const ctx = fakeContext({ services: { mailer } })
  assert.equal(await runTask(send, { readers: ['ada@example.com', 'grace@example.com'], issue: 7 }, ctx), 2)
  assert.deepEqual(ctx.progressed, [0.5, 1])
})

test('every reader gets one, as far as they have an address', async () => {
  const mailer = fakeMailer()
  await using bench = await workbench({ flows: [newsletter], services: { mailer } })
  const job = await bench.board.post(newsletter, LIST)
  await bench.drain()
  assert.equal(job.state, 'COMPLETE')
  assert.deepEqual([...mailer.sent.values()], ['ada@example.com', 'grace@example.com'])
})

test('a server that is busy is asked again, minutes later, in no time', async () => {
  const mailer = fakeMailer({ failures: 3 })
  await using bench = await workbench({ flows: [newsletter], services: { mailer } })
  await bench.board.post(newsletter, LIST)
  const [run] = await bench.drain()
  assert.equal(run?.settled, 'consumed')
  assert.equal(mailer.asked, 5)
})

test('after four times it is given up, and lies in the trash in the end', async () => {
  const mailer = fakeMailer({ failures: Number.POSITIVE_INFINITY })
  await using bench = await workbench({ flows: [newsletter], services: { mailer } })
  const job = await bench.board.post(newsletter, LIST)
  const runs = await bench.drain({ skipDelays: true })
  assert.deepEqual(
    runs.map(({ settled }) => settled),
    ['abandoned', 'abandoned', 'trashed'],
  )
  assert.equal(mailer.asked, 12)
  assert.equal(job.state, 'TRASHED')
})

test('an owner that dies when all is sent does not send twice', async () => {
  const mailer = fakeMailer()
  await using bench = await workbench({ flows: [newsletter], services: { mailer } })
  await bench.board.post(newsletter, LIST)
  const job = await bench.crash({ after: 'send' })
  await bench.drain()
  assert.equal(job.state, 'COMPLETE')
  assert.deepEqual([mailer.asked, mailer.sent.size], [4, 2])
})
