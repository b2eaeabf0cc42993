export { MemoryBackend } from './backend.ts'
export { MemorySpace, memorySpace } from './space.ts'
