export { MemoryBackend, memorySpace } from './backend.ts'
export { MemorySpace } from './space.ts'
