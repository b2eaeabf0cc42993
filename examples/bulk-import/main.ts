/** Ten thousand jobs with one call: bad rows are reported with their place, and the same import again posts nothing twice. */
import { openBoard, type PostItem } from 'jobboard'

const ROWS = 10_000

/** Reads the rows one by one, as a cursor or a file would give them. Row 4 names no one, and row 7 is an impossible job. */
async function* readRows(): AsyncGenerator<PostItem<{ name: string }>> {
  for (let row = 1; row <= ROWS; row += 1) {
    const name = row === 4 ? '' : `customer ${row}`
    const maxAttempts = row === 7 ? 0 : 3
    yield { flow: 'welcome', store: { name }, key: name === '' ? '' : `welcome/${row}`, maxAttempts }
  }
}

await using board = await openBoard('memory:')

async function importRows(): Promise<void> {
  const counts = { posted: 0, there: 0, refused: 0 }
  await board.postMany(readRows(), {
    onResult: (result, index) => {
      if ('error' in result) {
        counts.refused += 1
        console.log(`row ${index + 1}: ${result.error.message.replace(/^job \S+: /, '')}`)
      } else if (result.job.created) counts.posted += 1
      else counts.there += 1
    },
  })
  console.log(`${counts.posted} posted, ${counts.there} were there, ${counts.refused} refused`)
}

console.log('the import')
await importRows()
console.log('the import again, as after a crash')
await importRows()
console.log('on the board:', await board.countJobs())
