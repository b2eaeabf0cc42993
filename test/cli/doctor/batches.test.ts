/** What `jobboard doctor` finds of batches. */
import { describe, expect, test } from 'vitest'
import { examineBatches } from '../../../src/cli/doctor/batches.ts'
import type { Batch, JobBoard } from '../../../src/index.ts'
import { zookeeperPlace } from '../../board/boards.ts'
import { zookeeperHosts } from '../../support/namespace.ts'

async function batchOfTwo(board: JobBoard): Promise<Batch> {
  const batch = await board.batch({ name: 'import' })
  for (const name of ['first', 'second']) await batch.post('work', {}, { name })
  await batch.seal()
  return batch
}

describe.runIf(zookeeperHosts)('batches on ZooKeeper', () => {
  test('without open jobs have no findings, and those that will end are counted', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    expect(await examineBatches(board)).toEqual([])
    await batchOfTwo(board)
    expect(await examineBatches(board)).toEqual([{ severity: 'ok', about: 'batches', text: '1 with open jobs' }])
    const claims = await board.claimNext({ max: 2 })
    await Promise.all(claims.map((claim) => claim.consume()))
    expect(await examineBatches(board)).toEqual([])
  })

  test('that count a job which was removed by hand are reported, with what to do', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.open()
    const batch = await batchOfTwo(board)
    const { names } = await place.observer.getChildren(place.path)
    const posting = names.find((name) => /^job\d+$/.test(name))
    await place.observer.deleteRecursive(`${place.path}/${posting}`)
    const text = `batch ${batch.uuid} (import) counts 1 open job that the board does not have: removed by hand, or damaged; it never ends`
    const advice = 'post what is missing in another batch'
    expect(await examineBatches(board)).toEqual([
      { severity: 'warning', about: 'batch', text, advice: `jobboard batch cancel ${batch.uuid}, and ${advice}` },
    ])
    await batch.cancel()
    expect(await examineBatches(board)).toMatchObject([{ severity: 'warning', advice }])
  })
})
