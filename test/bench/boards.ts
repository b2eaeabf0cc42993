/** Every board in one run, and the fastest queues on the same servers beside them. */
import { boardsOn } from './contenders.ts'
import { compare } from './side-by-side.ts'

export default async function boards(): Promise<void> {
  await compare(boardsOn)
}
