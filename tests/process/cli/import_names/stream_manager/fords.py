class Ford:
    def cross(self, kind):
        self.last = kind
