import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPersistence } from '../../../src/persistence/index.ts'
import { persistenceContract } from '../../contract/persistence.ts'

persistenceContract({
  name: 'sqlite:',
  storage: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'jobboard-sqlite-'))
    return {
      open: () => openPersistence(`sqlite:${join(folder, 'jobs.db')}`),
      [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
    }
  },
})
