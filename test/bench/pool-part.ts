/** Processes of `bench -- pool` that have its flows. */
import { join } from 'node:path'
import { ROOT } from '../support/build.ts'
import { compiled } from '../support/compiled.ts'
import { type Part, startPart } from './part.ts'

const CHILD = join(ROOT, 'test/bench/pool-child.ts')

export interface PoolPart {
  readonly board: string
  readonly children: number
  /** The module that children import; the flows of one task by default. */
  readonly module?: 'pool-flows' | 'pool-large-flows'
  /** The name of the flow of its jobs. */
  readonly flow: string
  /** The number of jobs. */
  readonly count: number
  /** The number of jobs before the measurement. */
  readonly warmUp: number
}

/** Starts one that does its part when it is told to; the roles are those of `pool-child.ts`. */
export async function startPoolPart(role: string, options: PoolPart): Promise<Part> {
  const { board, children, module = 'pool-flows', flow, count, warmUp } = options
  const path = await compiled(join(ROOT, `test/bench/${module}.ts`), { bare: true })
  return startPart(CHILD, [role, board, path, String(children), flow, String(count), String(warmUp)])
}
