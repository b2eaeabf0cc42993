/** `jobboard batch …`, and jobs that the command line posts to a batch. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { batchesTable, batchLines } from '../../src/cli/output/render/batches.ts'
import { plainPaint, type Screen } from '../../src/cli/output/render/paint.ts'
import { type BatchView, openBoard } from '../../src/index.ts'
import { zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining, type Outcome } from './workplace.ts'

describe.skipIf(!zookeeperHosts)('batches in a shell', () => {
  let place: CliFolder
  const batch = (...words: string[]): Promise<Outcome> => place.jobboard(['batch', ...words])
  const created = async (...words: string[]) => (await batch('create', 'import', ...words)).stdout.trim()
  /** Ends all jobs on the board but those of the flow `report`. */
  const endAll = async (how: 'consume' | 'trash') => {
    await using board = await openBoard(place.board)
    for (let left = await board.countJobs(); left > 0; left -= 1) {
      const [claim] = await board.claimNext({ timeout: 0, accept: ({ name }) => name !== 'report' }).catch(() => [])
      await claim?.[how]()
    }
  }

  beforeEach(async () => {
    place = await createCliFolder()
  })
  afterEach(async () => place[Symbol.asyncDispose]())
  afterAll(killRemaining)

  test('are created, posted to, sealed, shown and awaited', async () => {
    const uuid = await created('--on-done', 'report', '--store', '{"month":"2026-10"}')
    expect(uuid).toMatch(/^[0-9a-f-]{36}$/)
    expect((await place.jobboard(['post', 'load', '--batch', uuid])).exitCode).toBe(0)
    await place.write('files.ndjson', '{"store":{"file":"a"}}\n{"store":{"file":"b"}}\n')
    const posted = await place.jobboard(['post', 'load', '--from', 'files.ndjson', '--batch', uuid])
    expect(posted).toMatchObject({ exitCode: 0, stdout: '2 posted\n' })
    expect((await place.jobboard(['jobs', '--batch', uuid, '--json'])).stdout.trim().split('\n')).toHaveLength(3)
    const [job] = jsonLines((await place.jobboard(['jobs', '--json'])).stdout) as { uuid: string }[]
    expect((await place.jobboard(['show', job?.uuid ?? ''])).stdout).toMatch(new RegExp(`batch +${uuid}`))
    expect((await batch('seal', uuid)).stdout).toMatch(
      new RegExp(`^batch ${uuid} +import +running\n +jobs +3: 0 done, 0 failed, 3 open\n +created +\\S+ by `),
    )
    expect(await batch('wait', uuid, '--within', '1s')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('is still running, with 3 of 3 jobs open'),
    })
    await endAll('consume')
    expect(await batch('wait', uuid.slice(-8))).toMatchObject({ exitCode: 0, stdout: 'done\n' })
    expect(jsonLines((await batch('list', '--json')).stdout)).toMatchObject([
      { uuid, name: 'import', state: 'done', total: 3, done: 3, failed: 0, open: 0, sealed: true, generation: 1 },
    ])
    expect((await batch('list')).stdout).toMatch(
      /UUID +NAME +STATE +DONE +FAILED +OPEN +AGE +BY\n.* import +done +3\/3 +0 +0/,
    )
    expect(jsonLines((await place.jobboard(['jobs', '--json'])).stdout)).toMatchObject([{ name: 'report' }])
  })

  test('show which jobs have failed, and run them again', async () => {
    const uuid = await created()
    await place.jobboard(['post', 'load', '--batch', uuid])
    await batch('seal', uuid)
    await endAll('trash')
    expect(await batch('wait', uuid, '--json')).toMatchObject({ exitCode: 1 })
    const shown = await batch('show', uuid, '--failed')
    expect(shown.stdout).toMatch(/ +jobs +1: 0 done, 1 failed, 0 open\n(.*\n)* +ended +\S+\n\nUUID +NAME +AGE/)
    expect(jsonLines((await batch('show', uuid, '--failed', '--json')).stdout)).toMatchObject([
      { state: 'failed', failedJobs: [{ name: 'load', state: 'TRASHED' }] },
    ])
    const [retried] = jsonLines((await batch('retry', uuid, '--json')).stdout)
    expect(retried).toMatchObject({ name: 'load' })
    expect((await batch('show', uuid)).stdout).toMatch(/running\n(.*\n)* +opened +2 times/)
    await endAll('consume')
    expect((await batch('wait', uuid)).stdout).toBe('done\n')
    expect(await batch('retry', uuid)).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringContaining('no job'),
    })
  })

  test('are cancelled, once somebody has agreed', async () => {
    const uuid = await created()
    await place.jobboard(['post', 'load', '--batch', uuid])
    expect(await batch('cancel', uuid)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('--yes') })
    const kept = await place.jobboard(['batch', 'cancel', uuid], { answer: () => 'n' })
    expect(kept).toMatchObject({ exitCode: 0, stdout: '' })
    const cancelled = await batch('cancel', uuid, '--yes', '--reason', 'wrong file')
    expect(cancelled.stdout).toMatch(/cancelled\n +jobs +1: 0 done, 1 failed, 0 open\n(.*\n)* +reason +wrong file\n/)
    expect(await batch('wait', uuid)).toMatchObject({ exitCode: 1, stdout: 'cancelled\n' })
  })

  test('that take no jobs are named before a line is read', async () => {
    await place.write('files.ndjson', '{"store":{}}\n{"store":{}}\n')
    const post = (uuid: string, ...words: string[]) => place.jobboard(['post', 'load', '--batch', uuid, ...words])
    const unknown = '0199c0de-0000-7000-8000-00000000000b'
    for (const words of [[], ['--from', 'files.ndjson']])
      expect(await post(unknown, ...words)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(unknown) })
    expect(await post('nonsense')).toMatchObject({
      exitCode: expect.any(Number),
      stderr: expect.stringContaining("'nonsense'"),
    })
    const uuid = await created()
    await batch('seal', uuid)
    const refused = await post(uuid, '--from', 'files.ndjson')
    expect(refused.exitCode).toBe(1)
    expect(refused.stderr).toContain('is sealed')
    expect(refused.stderr).not.toContain('cannot be reached')
  })

  test('a text that is no uuid, and inputs for no flow, are refused with what to do', async () => {
    await created()
    for (const [words, message] of [
      [['show', ''], 'an empty text is not a uuid'],
      [['seal', 'nonsense'], 'nonsense is not a uuid; .*; jobboard batch list prints the uuid of each batch'],
      [['create', 'import', '--store', '{"n":1}'], '--store is for the flow of --on-done or --on-failed: name one'],
    ] as const)
      expect(await batch(...words)).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(message) })
    expect(jsonLines((await batch('list', '--json')).stdout)).toHaveLength(1)
  })

  test('print no values that are to be hidden', async () => {
    await using board = await openBoard(place.board)
    const { uuid } = await board.batch({ name: 'import', meta: { token: 'secret', month: '2026-10' } })
    for (const words of [
      ['list', '--json'],
      ['show', uuid],
      ['show', uuid, '--json'],
      ['seal', uuid],
    ]) {
      const { exitCode, stdout } = await batch(...words, '--redact', 'token')
      expect([exitCode, stdout.includes('2026-10'), stdout.includes('secret')]).toEqual([0, true, false])
    }
  })

  test('there are none', async () => {
    await place.jobboard(['post', 'load'])
    expect((await batch('list')).stdout).toMatch(/^no batches on zookeeper:/)
  })
})

test('what is printed of batches is aligned, and hostile texts are escaped', () => {
  const now = new Date('2026-06-01T12:00:00Z')
  const screen: Screen = { paint: plainPaint, width: undefined, now }
  const batch: BatchView = {
    ...{ uuid: '0199c0de-0000-7000-8000-000000000001', name: 'im\u001b[2Jport', who: 'ada', createdAt: now },
    ...{ total: 3, done: 1, failed: 1, open: 1, sealed: true, generation: 2, state: 'cancelled', endedAt: undefined },
    ...{ reason: 'wrong\nfile', meta: { month: '2026-\u001b[2J10' } },
  }
  expect(batchesTable([batch], screen).map((row) => row.trimEnd())).toEqual([
    'UUID                                  NAME           STATE      DONE  FAILED  OPEN  AGE  BY',
    '0199c0de-0000-7000-8000-000000000001  im\\x1b[2Jport  cancelled  1/3   1       1     0s   ada',
  ])
  expect(batchLines(batch, screen)).toEqual([
    'batch 0199c0de-0000-7000-8000-000000000001  im\\x1b[2Jport  cancelled',
    '  jobs      3: 1 done, 1 failed, 1 open',
    '  created   2026-06-01T12:00:00.000Z by ada',
    '  reason    wrong\\nfile',
    '  opened    2 times',
    expect.stringMatching(/^ {2}meta +\{"month":"2026-\\+u001b\[2J10"\}$/),
  ])
})
