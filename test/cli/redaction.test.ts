/** What `--redact` hides in the texts that people have given: why a limit, a schedule or the board is stopped; and what conductors report. */
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { openBoard, schedule } from '../../src/board/index.ts'
import { type CliFolder, createCliFolder, killRemaining } from './workplace.ts'

const SECRET = { reason: 'see token=hunter2' }

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Expects that a command prints the redacted text if it is told so, and the whole one otherwise. */
async function expectHidden(...args: string[]): Promise<void> {
  const redacted = await place.jobboard([...args, '--redact', 'token'])
  expect(redacted.stdout, args.join(' ')).toContain('token=[redacted]')
  expect(redacted.stdout, args.join(' ')).not.toContain('hunter2')
  expect((await place.jobboard(args)).stdout, args.join(' ')).toContain('hunter2')
}

test('reasons of holds', async () => {
  await using board = await openBoard(place.board)
  await board.limits.set('api', { concurrency: 2 })
  for (const key of ['api', 'a*']) await board.limits.stop(key, SECRET)
  await expectHidden('limits', 'list')
  await expectHidden('limits', 'list', '--json')
  await expectHidden('limits', 'show', 'api')
  await expectHidden('limits', 'show', 'api', '--json')
  await expectHidden('limits', 'set', 'api', '--concurrency', '3', '--json')
  await expectHidden('limits', 'resume', 'api')
})

test('reasons of pauses', async () => {
  await using board = await openBoard(place.board)
  await board.schedules.add(schedule('nightly', { every: '1h' }, 'report', {}))
  await board.schedules.pause('nightly', SECRET)
  await expectHidden('schedule', 'list', '--json')
  await expectHidden('schedule', 'show', 'nightly')
  await expectHidden('schedule', 'show', 'nightly', '--json')
  await board.pause(SECRET)
  await expectHidden('info')
  await expectHidden('info', '--json')
  await expectHidden('doctor')
  const { uuid } = await board.post('report', {})
  await expectHidden('show', uuid)
  await expectHidden('track', uuid, '--json')
})

test('why a conductor can start no child process', async () => {
  await using board = await openBoard(place.board)
  const metadata = { state: 'idle', noChild: 'it exited: token=hunter2' }
  await using _conductor = await board.registerEntity({ kind: 'conductor', name: 'one', metadata })
  await expectHidden('conductors', '--json')
  await expectHidden('info', '--json')
})
