/** `post --after`, `show`, `history` and `trash restore --dependents`: jobs after jobs on the command line. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type JobBoard, openBoard } from '../../src/index.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type CliFolder, createCliFolder, jsonLines } from './workplace.ts'

describe.skipIf(!zookeeperHosts)('jobs after jobs', () => {
  let place: CliFolder
  let board: JobBoard

  beforeEach(async () => {
    const uri = `zookeeper://${zookeeperHosts}${namespace('cli')}`
    place = await createCliFolder({ board: uri })
    board = await openBoard(uri)
  })
  afterEach(async () => {
    await board.close()
    await place[Symbol.asyncDispose]()
  })

  const run = async (...words: string[]) => {
    const { exitCode, stdout, stderr } = await place.jobboard(words)
    expect([exitCode, stderr.replace(/^(restored|jobboard: there are no logbooks).*\n/, '')]).toEqual([0, ''])
    return stdout.trim()
  }

  test('are posted, shown, cancelled with the one before, and restored with it', async () => {
    const first = await run('post', 'load')
    const second = await run('post', 'merge', '--after', first)
    const third = await run('post', 'tidy', '--after-settled', second)
    const shown = await run('show', second)
    expect(shown).toMatch(new RegExp(`because +it waits for job ${first} \\(load\\)`))
    expect(shown).toMatch(new RegExp(`after +${first}`))
    expect(shown).toMatch(new RegExp(`before +${third}`))
    expect(JSON.parse(await run('show', third, '--json'))).toMatchObject({
      job: { after: [{ uuid: second, on: 'settled' }], waitingFor: { kind: 'job' } },
    })
    const [claim] = await board.claimNext()
    await claim.trash({ reason: 'it broke' })
    const alone = await place.jobboard(['trash', 'restore', second])
    expect(alone).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/restore that one, .*--dependents/) })
    expect((await run('trash', 'restore', first, '--dependents')).split('\n')).toEqual([first, second])
    // The job that runs in any case has been free since the other one went to the trash.
    for (const name of ['tidy', 'load', 'merge']) {
      const [next] = await board.claimNext()
      expect(next.job.name).toBe(name)
      await next.consume()
    }
    const history = jsonLines(await run('history', '--json', '--limit', '3'))
    expect(history).toMatchObject([
      { uuid: second, outcome: 'COMPLETE' },
      { uuid: first, outcome: 'COMPLETE', runs: 2 },
      { uuid: third, outcome: 'COMPLETE', flow: 'tidy' },
    ])
    const lines = (await run('history', '--trashed')).split('\n')
    expect(lines[0]).toMatch(/^UUID +NAME +OUTCOME +AGE +TOOK/)
    expect(lines.slice(1).map((line) => line.split(/ +/).slice(0, 3))).toEqual([
      [second, 'merge', 'TRASHED'],
      [first, 'load', 'TRASHED'],
    ])
  })

  test('the history is limited to a time, and says where it does not reach back', async () => {
    for (const name of ['one', 'two']) {
      await run('post', name)
      await (await board.claimNext())[0].consume()
    }
    const today = new Date().toISOString().slice(0, 10)
    expect(jsonLines(await run('history', '--since', '1d', '--json'))).toMatchObject([{ name: 'two' }, { name: 'one' }])
    expect(await run('history', '--until', '2026-01-01')).toMatch(/^no such jobs in the history of /)
    expect(await run('history', '--until', '1d')).toMatch(/^no such jobs/)
    const cut = await place.jobboard(['history', '--since', '1d', '--limit', '1'])
    expect(cut).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^only the last 1 of \d+ jobs are listed\n$/),
    })
    await run('post', 'three')
    await (await board.claimNext())[0].trash({ reason: 'x' })
    await run('post', 'four')
    await (await board.claimNext())[0].consume()
    expect(jsonLines(await run('history', '--trashed', '--limit', '1', '--json'))).toMatchObject([{ name: 'three' }])
    const wrong = await place.jobboard(['history', '--since', 'yesterday'])
    expect(wrong).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/--since: "yesterday" is not a time; write /),
    })
    const day = await place.jobboard(['history', '--since', today, '--until', today])
    expect(day.stdout).toMatch(/^no such jobs/)
  })

  test('a whole graph is restored, each job after those on which it depends', async () => {
    const uuids = [await run('post', 'flow')]
    for (let n = 1; n < 5; n++) uuids.push(await run('post', 'flow', '--after', uuids[n - 1] ?? ''))
    const [claim] = await board.claimNext()
    await claim.trash()
    expect((await run('trash', 'restore', '--all', '--yes')).split('\n').sort()).toEqual([...uuids].sort())
    expect(await board.countJobs()).toBe(uuids.length)
  })

  test('what is not a job, or not known, is refused', async () => {
    const unknown = '0199c0de-0000-7000-8000-000000000001'
    const wrong = await place.jobboard(['post', 'flow', '--after', 'x'])
    expect(wrong).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('after: each job must be a UUID') })
    const missing = await place.jobboard(['post', 'flow', '--after', unknown])
    expect(missing).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(`job ${unknown} is neither on`) })
    expect(await run('history')).toMatch(/^no jobs in the history of /)
  })
})
