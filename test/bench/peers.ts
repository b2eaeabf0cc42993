/** The board on ZooKeeper beside the fastest queues that Node has, in one run. */
import { peersOn } from './contenders.ts'
import { compare } from './side-by-side.ts'

export default async function peers(): Promise<void> {
  await compare(peersOn)
}
