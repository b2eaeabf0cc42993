import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workbench } from 'jobboard/testing'
import { hello } from './flows.ts'

test('hello greets by name', async () => {
  await using bench = await workbench({ flows: [hello] })
  const job = await bench.board.post(hello, { name: 'Ada' })
  await bench.drain()
  const tracked = await bench.track(job)
  assert.equal(tracked.status, 'done')
  assert.equal(tracked.status === 'done' && tracked.results['greet'], 'Hello, Ada!')
})

test('hello is continued when its conductor has died', async () => {
  await using bench = await workbench({ flows: [hello] })
  const job = await bench.board.post(hello, { name: 'Ada' })
  await bench.crash({ during: 'print' })
  await bench.drain()
  const { status } = await bench.track(job)
  assert.equal(status, 'done')
})
