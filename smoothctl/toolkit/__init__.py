"""What training methods call: gradient attacks, the averaged softmax, augmentation."""
