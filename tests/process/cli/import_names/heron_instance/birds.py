KINDS = ["cinerea", "purpurea"]
